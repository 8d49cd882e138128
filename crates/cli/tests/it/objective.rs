//! `check --objective sdcc`: the certificate of every junction of a session, its bounds and its
//! coverage; clear words where there is none.

use crate::pleach::{failure, json, stdout};

const SESSION: &str = "examples/sessions/compacted.jsonl";
const GATE: &str = "examples/records/gate.jsonl";

#[test]
fn the_certificate_of_a_session_has_a_row_for_every_junction_and_adds_up() {
    let report = json(&["check", SESSION, "--clip", "32", "--objective", "sdcc", "--json"]);
    let (certificate, all) = (&report["sdcc"], &report["sdcc"]["all"]);
    let junctions = certificate["junctions"].as_array().unwrap();
    let contexts: Vec<_> =
        junctions.iter().filter_map(|junction| junction["junction"].as_u64()).collect();
    assert!(!contexts.is_empty());
    let evictions: Vec<_> = report["evictions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["context"].as_u64().unwrap())
        .collect();
    assert!(
        contexts.iter().all(|context| evictions.contains(context)),
        "{contexts:?} {evictions:?}"
    );
    for count in ["sampled", "supervised", "diverging"] {
        let sum: u64 = junctions.iter().map(|junction| junction[count].as_u64().unwrap()).sum();
        assert_eq!(Some(sum), all[count].as_u64(), "{count}");
    }
    assert_eq!(all["sampled"], report["stats"]["sampled_tokens"]);
    assert_eq!(all["supervised"], report["stats"]["compressed"]["supervised"]);
    let number = |key: &str| all[key].as_f64().unwrap();
    assert!(number("kl_max") > 0.0);
    for bound in ["loss_bound", "gradient_bound"] {
        let sum = format!("{bound}_sum");
        let parts: f64 = junctions.iter().map(|junction| junction[&sum].as_f64().unwrap()).sum();
        assert!(
            (parts - number(&sum)).abs() <= 1e-9 * number(&sum) && number(&sum) > 0.0,
            "{bound}"
        );
        assert!(number(&format!("{bound}_max")) <= number(&sum));
    }
    assert!(number("total_variation_max") <= number("pinsker_max"));
    assert!(number("total_variation_mean") <= number("pinsker_mean"));
}

#[test]
fn a_person_reads_how_far_each_junction_is_and_how_much_is_not_trained() {
    let text = stdout(&["check", GATE, "--objective", "sdcc"]);
    assert!(text.contains("sdcc, by the next eviction"), "{text}");
    for column in
        ["total variation mean", "mean at most", "max at most", "loss at most", "gradient at most"]
    {
        assert!(text.contains(column), "{column}: {text}");
    }
    assert!(text.contains("where advantages lie within 1 of 0"), "{text}");
    assert!(
        text.contains("sampled tokens are not in the compressed walk: sdcc does not train them"),
        "{text}"
    );
    assert!(!stdout(&["check", GATE]).contains("sdcc"), "nobody asked");
}

#[test]
fn where_survivors_keep_what_they_saw_there_is_no_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.jsonl");
    let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token","cache":"kv_evict"}
{"t":"segment","id":0,"role":"user","origin":"human","tokens":[1,2]}
{"t":"append","context":0,"from":null,"segments":[0]}
{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[3]}
{"t":"generation","id":0,"context":0,"output":[1]}
"#;
    std::fs::write(&path, records).unwrap();
    let (status, message) = failure(&["check", &path.display().to_string(), "--objective", "sdcc"]);
    assert_eq!(status, 2);
    assert!(message.contains("kv_evict") && message.contains("packed"), "{message}");
    assert!(message.contains("kept.jsonl: "), "of a folder's files it says which: {message}");
}
