//! The verbs on the examples of this repository, and what they say to bad input: status 2, and on
//! standard error the file, the line and what to do.
use crate::pleach;

use crate::pleach::{failure, json, stdout};

const GATE: &str = "examples/records/gate.jsonl";
const SESSION: &str = "examples/sessions/compacted.jsonl";

#[test]
fn convert_writes_records_that_convert_reads() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("records.jsonl").display().to_string();
    stdout(&["convert", SESSION, "--out", &out]);
    let records = std::fs::read_to_string(&out).unwrap();
    assert!(records.lines().all(|line| !line.contains("\"tokens\":[")), "no tokenizer was named");
    assert_eq!(stdout(&["convert", &out, "--out", "-"]), records);
    assert_eq!(
        json(&["inspect", &out, "--json"])["stats"],
        json(&["inspect", SESSION, "--json"])["stats"]
    );
}

#[test]
fn check_tells_how_far_each_layout_is_from_the_live_views() {
    let report = json(&["check", GATE, "--with-union", "--json"]);
    assert_eq!(report["equivalence"]["holds"], true);
    assert_eq!(report["coverage"]["packed"], 1.0);
    assert!(report["coverage"]["compressed"].as_f64().unwrap() < 1.0);
    for layout in ["compressed", "full"] {
        assert!(report["gap"][layout]["all"]["max"].as_f64().unwrap() > 1e-3, "{layout}: {report}");
    }
    assert!(
        report["union_gap"]["all"]["max"].as_f64().unwrap() > 1e-3,
        "two layers see through the union mask"
    );
    assert_eq!(
        report["logp"]["exact"].as_array().unwrap().len(),
        report["stats"]["sampled_tokens"].as_u64().unwrap() as usize
    );
}

#[test]
fn check_prints_a_table_for_a_person() {
    let text = stdout(&["check", GATE, "--no-model"]);
    insta::assert_snapshot!(text);
}

#[test]
fn check_writes_a_page_that_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("page.html").display().to_string();
    stdout(&["check", GATE, "--html", &out]);
    let page = std::fs::read_to_string(&out).unwrap();
    assert!(page.contains("<svg") && page.contains("gate.jsonl"));
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !outside.contains("http://") && !outside.contains("https://"),
        "the page names another host"
    );
}

#[test]
fn check_clips_and_says_so() {
    let report = json(&["check", GATE, "--clip", "8", "--json"]);
    assert!(report["notes"][0].as_str().unwrap().contains("clipped"));
    let whole = json(&["check", GATE, "--no-model", "--json"]);
    assert_eq!(report["stats"]["evictions"], whole["stats"]["evictions"]);
    assert!(
        report["stats"]["packed"]["tokens"].as_u64() < whole["stats"]["packed"]["tokens"].as_u64()
    );
}

#[test]
fn a_model_part_that_does_not_fit_is_left_out_and_a_fitting_clip_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.jsonl");
    let mut records = String::from(
        "{\"t\":\"header\",\"version\":1,\"harness\":\"example\",\"fidelity\":\"token\"}\n",
    );
    let tokens: Vec<u32> = (0..2_000_000).map(|at| at % 50).collect();
    records += &format!(
        "{{\"t\":\"segment\",\"id\":0,\"role\":\"user\",\"origin\":\"human\",\"tokens\":{tokens:?}}}\n"
    );
    records += "{\"t\":\"append\",\"context\":0,\"from\":null,\"segments\":[0]}\n";
    records += "{\"t\":\"segment\",\"id\":1,\"role\":\"assistant\",\"origin\":\"policy\",\"tokens\":[1,2,3]}\n";
    records += "{\"t\":\"generation\",\"id\":0,\"context\":0,\"output\":[1]}\n";
    std::fs::write(&path, records).unwrap();
    let path = path.display().to_string();
    let output = pleach::pleach(&["check", &path]);
    let (text, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(
        output.status.code(),
        Some(1),
        "nothing was compared, and nobody asked for that: {error}"
    );
    assert!(error.contains(&format!("error: {path}: the model part needs about")), "{error}");
    assert!(
        error.contains("--clip ") && error.contains("--dtype f32") && error.contains("--no-model"),
        "{error}"
    );
    assert!(stdout(&["check", &path, "--no-model"]).contains("2,000,003"));
    assert!(text.contains("2,000,003"), "the table is printed all the same: {text}");
    let (_, advice) = text.split_once("--clip ").unwrap();
    let clip = advice.split_whitespace().next().unwrap();
    assert!(clip.parse::<u32>().unwrap() > 1000);
}

#[test]
fn inspect_prints_the_branch_tree_in_dot() {
    assert!(stdout(&["inspect", GATE, "--dot"]).starts_with("digraph {"));
}

#[test]
fn mask_writes_png_and_svg_by_the_ending() {
    let folder = tempfile::tempdir().unwrap();
    for (name, start) in [("mask.png", &b"\x89PNG"[..]), ("mask.svg", b"<svg")] {
        let out = folder.path().join(name).display().to_string();
        stdout(&["mask", GATE, "--tile", "16", "--out", &out]);
        assert!(std::fs::read(&out).unwrap().starts_with(start), "{name}");
    }
    let (status, message) = failure(&["mask", GATE, "--out", "mask.jpg"]);
    assert_eq!(
        (status, message.trim()),
        (2, "error: mask.jpg: a picture's name ends in .png or .svg")
    );
}

#[test]
fn a_missing_file_is_bad_input() {
    let (status, message) = failure(&["check", "no-such-file.jsonl"]);
    assert_eq!(status, 2);
    assert!(message.starts_with("error: no-such-file.jsonl: cannot be read"), "{message}");
}

#[test]
fn a_faulty_record_is_named_with_file_line_key_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.jsonl");
    let records = std::fs::read_to_string(pleach::root().join(GATE)).unwrap();
    std::fs::write(&path, records.replacen("\"from\": 0", "\"from\": 90", 1)).unwrap();
    let path = path.display().to_string();
    let (status, message) = failure(&["check", &path]);
    assert_eq!(status, 2);
    let line = "error[missing-context]: context 90 is not defined above; a line may only refer to what stands above it";
    assert!(message.contains(&format!("{path}:8: from: {line}")), "{message}");
}

#[test]
fn one_bad_file_in_a_folder_is_told_and_the_others_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(pleach::root().join(GATE), folder.path().join("a.jsonl")).unwrap();
    std::fs::write(folder.path().join("b.jsonl"), "{\"t\":\"header\"\n").unwrap();
    std::fs::copy(pleach::root().join(GATE), folder.path().join("c.jsonl")).unwrap();
    let output = pleach::pleach(&["check", &folder.path().display().to_string(), "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["files"].as_array().unwrap().len(), 2);
    assert!(report["errors"][0]["error"].as_str().unwrap().contains("b.jsonl:1"), "{report}");
    let one = report["files"][0]["stats"]["sampled_tokens"].as_u64().unwrap();
    assert_eq!(report["total"]["stats"]["sampled_tokens"], 2 * one);
}

#[test]
fn an_unknown_device_and_one_that_is_not_built_in_are_told_apart() {
    let (status, message) = failure(&["check", GATE, "--device", "abacus"]);
    assert_eq!(status, 2);
    assert!(message.contains("abacus") && message.contains("flex"), "{message}");
    if !cfg!(feature = "cuda") {
        let (status, message) = failure(&["check", GATE, "--device", "cuda"]);
        assert_eq!(status, 2);
        assert!(message.contains("cuda") && message.contains("feature"), "{message}");
    }
}

#[test]
fn help_is_what_it_was() {
    for verb in ["inspect", "convert", "layout", "mask", "check"] {
        insta::assert_snapshot!(format!("help-{verb}"), stdout(&[verb, "--help"]));
    }
    insta::assert_snapshot!("help", stdout(&["--help"]));
}

const NOTHING_SAMPLED: &str = r#"{"t":"header","version":1,"harness":"example","fidelity":"token"}
{"t":"segment","id":0,"role":"user","origin":"human","tokens":[1,2]}
{"t":"append","context":0,"from":null,"segments":[0]}
"#;

#[test]
fn a_file_in_which_nothing_was_sampled_is_checked_and_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing.jsonl");
    std::fs::write(&path, NOTHING_SAMPLED).unwrap();
    let (path, page) =
        (path.display().to_string(), folder.path().join("page.html").display().to_string());
    let report = json(&["check", &path, "--with-union", "--html", &page, "--json"]);
    assert_eq!(report["stats"]["sampled_tokens"], 0);
    assert_eq!(report["equivalence"]["holds"], true);
    let note = "nothing was sampled: there is nothing to check";
    assert!(report["notes"].as_array().unwrap().iter().any(|found| found == note), "{report}");
    let output = pleach::pleach(&["check", &path]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && warning.contains(&format!("warning: {path}: {note}")),
        "{warning}"
    );
}

#[test]
fn a_session_that_holds_no_call_is_no_success_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let session = include_str!("../../../../examples/sessions/compacted.jsonl");
    let asked = session.lines().filter(|line| !line.contains("\"type\":\"assistant\""));
    std::fs::write(&path, asked.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let (path, out) = (path.display().to_string(), folder.path().join("out").display().to_string());
    for arguments in [
        &["check", &path, "--no-model", "--lenient"][..],
        &["inspect", &path, "--lenient"],
        &["layout", &path, "--json", "--lenient"],
        &["convert", &path, "--out", &out, "--lenient"],
    ] {
        let output = pleach::pleach(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("holds no call of a model"), "{arguments:?}: {said}");
    }
}

#[test]
fn gradients_that_would_not_fit_are_an_error_and_not_a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.jsonl");
    let tokens: Vec<u32> = (0..2_000_000).map(|at| at % 50).collect();
    std::fs::write(&path, NOTHING_SAMPLED.replace("[1,2]", &format!("{tokens:?}")) + SAMPLED)
        .unwrap();
    let out = folder.path().join("gradients.safetensors").display().to_string();
    let (status, message) = failure(&["check", &path.display().to_string(), "--gradients", &out]);
    assert_eq!(status, 2);
    assert!(
        message.contains("no gradients are written") && message.contains("--clip "),
        "{message}"
    );
}

const SAMPLED: &str = r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[1],"logprobs":[-0.5]}
{"t":"generation","id":0,"context":0,"output":[1]}
"#;

#[test]
fn recorded_log_probabilities_are_compared_with_the_live_views() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recorded.jsonl");
    std::fs::write(&path, NOTHING_SAMPLED.to_string() + SAMPLED).unwrap();
    let report = json(&["check", &path.display().to_string(), "--json"]);
    let exact = report["logp"]["exact"][0][2].as_f64().unwrap();
    let gap = report["recorded_gap"]["signed_mean"].as_f64().unwrap();
    assert!((gap - (exact + 0.5)).abs() < 1e-12, "{report}");
}

#[test]
fn ids_and_vocabularies_beyond_every_device_index_are_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.jsonl");
    let told = |records: String| {
        std::fs::write(&path, records + SAMPLED).unwrap();
        let (status, message) = failure(&["check", &path.display().to_string()]);
        assert_eq!(status, 2, "{message}");
        message
    };
    for id in ["4294967295", "2147483647"] {
        let message = told(NOTHING_SAMPLED.replace("[1,2]", &format!("[{id}]")));
        assert!(
            message.contains(&format!("large.jsonl: token id {id} is above 2^31 - 2")),
            "{message}"
        );
    }
    let tokenizer = r#""fidelity":"token","tokenizer":{"id":"t","vocab_size":4000000000}"#;
    let message = told(NOTHING_SAMPLED.replace(r#""fidelity":"token""#, tokenizer));
    assert!(
        message.contains("header.tokenizer.vocab_size: 4000000000 is above 2^31 - 1"),
        "{message}"
    );
}
