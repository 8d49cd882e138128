//! One table over a folder: every session is a line, a bad one too, and the same rows come as JSON
//! and as Parquet.
use crate::pleach;

use crate::pleach::pleach;
use serde_json::Value;

/// Two sessions of different formats, a file that is none, a damaged one, and a document of
/// something else.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("deeper")).unwrap();
    std::fs::copy(pleach::root().join("examples/records/gate.jsonl"), at("a.jsonl")).unwrap();
    std::fs::copy(pleach::root().join("examples/sessions/compacted.jsonl"), at("deeper/b.jsonl"))
        .unwrap();
    std::fs::write(at("c.jsonl"), "{\"t\":\"header\"\n").unwrap();
    std::fs::write(at("package.json"), "{\"name\":\"x\"}").unwrap();
    let steps = "{\"rollout_id\":\"q\",\"prompt_ids\":[1,2],\"completion_ids\":[3],\"reward\":1}";
    std::fs::write(at("steps.json"), steps).unwrap();
    folder
}

#[test]
fn one_bad_session_is_one_line_and_not_the_end() {
    let folder = folder();
    let output = pleach(&["inspect", &folder.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    let table = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 6, "{table}");
    assert!(lines[2].starts_with("c.jsonl") && lines[2].contains("not read"), "{table}");
    assert!(lines[3].starts_with("deeper/b.jsonl") && lines[3].contains("claude-code"), "{table}");
    assert_eq!(lines[5], "4 sessions, 1 of them not read");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("c.jsonl:1"), "{errors}");
}

#[test]
fn rows_come_as_json_in_the_order_of_the_table() {
    let folder = folder();
    let output = pleach(&["inspect", &folder.path().display().to_string(), "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let harnesses: Vec<Option<&str>> = rows.iter().map(|row| row["harness"].as_str()).collect();
    assert_eq!(harnesses.len(), 4);
    assert_eq!((harnesses[1], harnesses[2], harnesses[3]), (None, Some("claude-code"), Some("rl")));
    assert!(rows[1]["error"].is_string() && rows[2]["error"].is_null());
    assert_eq!(rows[3]["generations"], 1);
}

#[test]
fn sessions_that_were_put_aside_and_folders_of_events_are_one_row_each() {
    let folder = tempfile::tempdir().unwrap();
    let session = include_str!("../../../../examples/sessions/compacted.jsonl");
    std::fs::write(folder.path().join("a.jsonl.reset.2026-02-03T09-14-06Z"), session).unwrap();
    std::fs::write(folder.path().join("b.jsonl.bak"), "no session at all\n").unwrap();
    let events = folder.path().join("run/events");
    std::fs::create_dir_all(&events).unwrap();
    let lines = [
        r#"{"id":"e0","timestamp":"2026-02-03T09:14:06","source":"agent","kind":"SystemPromptEvent","system_prompt":{"type":"text","text":"Keep the tower."},"tools":[]}"#,
        r#"{"id":"e1","timestamp":"2026-02-03T09:14:07","source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":[{"type":"text","text":"Ring."}]}}"#,
    ];
    for (at, line) in lines.iter().enumerate() {
        std::fs::write(events.join(format!("event-0000{at}-e{at}.json")), line).unwrap();
    }
    let table = pleach::pleach(&["inspect", &folder.path().display().to_string(), "--json"]);
    let rows = String::from_utf8(table.stdout).unwrap();
    let files: Vec<String> = rows
        .lines()
        .map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap()["file"].to_string())
        .collect();
    let ends = |at: usize, end: &str| files[at].trim_end_matches('"').ends_with(end);
    assert!(files.len() == 2 && ends(0, "09-14-06Z") && ends(1, "run"), "{files:?}");
}

#[test]
fn what_a_session_reads_of_its_sub_agents_is_no_session_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("abc")).unwrap();
    let session = |id: &str| {
        let start = r#"{"sessionId":"abc","projectHash":"h"}"#;
        let user = format!(
            r#"{{"id":"{id}u","timestamp":"t","type":"user","content":[{{"text":"hi"}}]}}"#
        );
        let says = format!(
            r#"{{"id":"{id}g","timestamp":"t","type":"gemini","content":"ho","model":"m"}}"#
        );
        format!("{start}\n{user}\n{says}\n")
    };
    std::fs::write(folder.path().join("abc/agent-1.jsonl"), session("a")).unwrap();
    std::fs::write(folder.path().join("session-1.jsonl"), session("s")).unwrap();
    let output = pleach(&["inspect", &folder.path().display().to_string(), "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 1, "{text}");
    assert!(rows[0]["file"].as_str().unwrap().ends_with("session-1.jsonl"));
    assert_eq!(rows[0]["generations"], 2);
    let table = pleach::stdout(&["inspect", &folder.path().display().to_string()]);
    assert_eq!(table.lines().last(), Some("1 session, read"));
    let checked =
        pleach::stdout(&["check", &folder.path().display().to_string(), "--no-model", "--json"]);
    let report: Value = serde_json::from_str(&checked).unwrap();
    let files: Vec<&str> = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["file"].as_str().unwrap())
        .collect();
    assert!(matches!(files[..], [only] if only.ends_with("session-1.jsonl")), "{files:?}");
}

#[test]
fn a_file_that_records_were_once_made_from_is_checked_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let records =
        std::fs::read_to_string(pleach::root().join("examples/records/gate.jsonl")).unwrap();
    let named = records.replacen("\"harness\"", "\"files\":[\"b.jsonl\"],\"harness\"", 1);
    assert_ne!(named, records);
    std::fs::write(folder.path().join("a.jsonl"), named).unwrap();
    std::fs::write(folder.path().join("b.jsonl"), "{\"t\":\"header\"\n").unwrap();
    for verb in [&["inspect"][..], &["check", "--no-model"]] {
        let (code, error) =
            pleach::failure(&[verb, &[&folder.path().display().to_string()]].concat());
        assert!(code == 2 && error.contains("b.jsonl:1"), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_to_be_one_that_cannot_be_written() {
    let session = pleach::root().join("examples/sessions/compacted.jsonl").display().to_string();
    for format in ["records", "atif"] {
        let (code, error) =
            pleach::failure(&["convert", &session, "--to", format, "--out", "/dev/full"]);
        assert!(code == 2 && error.contains("cannot be written"), "{error}");
    }
}

#[test]
fn a_format_that_is_forced_and_of_which_nothing_is_found_is_bad_input() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (session, steps) = (path("deeper/b.jsonl"), path("steps.json"));
    for (file, formats) in [
        (
            &session,
            &["atif", "tc-rag", "agentfold", "codex", "opencode", "inspect-ai", "pi", "records"][..],
        ),
        (&steps, &["codex", "opencode", "gemini-cli", "inspect-ai", "tc-rag", "agentfold"]),
    ] {
        for format in formats {
            let (code, error) = pleach::failure(&["inspect", file, "--from", format]);
            assert_eq!(code, 2, "{format}: {error}");
            assert!(
                error.contains(&format!("nothing in it is of the format {format}")),
                "{format}: {error}"
            );
            assert!(error.contains("leave the format (--from) away"), "{error}");
        }
    }
    assert_eq!(
        pleach(&["convert", &steps, "--from", "abacus", "--out", "-"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_session_beside_a_damaged_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::copy(pleach::root().join("examples/sessions/compacted.jsonl"), path("b.jsonl"))
        .unwrap();
    std::fs::write(path("a.jsonl.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03 no stream").unwrap();
    let output = pleach(&["inspect", &folder.path().display().to_string()]);
    let table = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        table.contains("claude-code") && table.contains("2 sessions, 1 of them not read"),
        "{table}{errors}"
    );
    assert!(
        errors.contains("a.jsonl.gz: its gzip stream is damaged") && errors.contains("`gzip -dc`"),
        "{errors}"
    );
}

#[test]
fn a_trajectory_that_convert_writes_reads_back_as_the_same_records() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (name, from) in [("t.json", path("deeper/b.jsonl")), ("u.json", path("steps.json"))] {
        assert!(pleach(&["convert", &from, "--to", "atif", "--out", &path(name)]).status.success());
        let (there, back) = (
            pleach(&["convert", &from, "--out", "-"]),
            pleach(&["convert", &path(name), "--out", "-"]),
        );
        assert_eq!(
            String::from_utf8(there.stdout).unwrap(),
            String::from_utf8(back.stdout).unwrap()
        );
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_table_without_parquet_says_how_to_build_it() {
    let folder = folder();
    let output =
        pleach(&["inspect", &folder.path().display().to_string(), "--out", "table.parquet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--features parquet"));
}

#[cfg(feature = "parquet")]
#[test]
fn the_table_is_written_as_parquet() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    let folder = folder();
    let out = folder.path().join("table.parquet");
    pleach(&["inspect", &folder.path().display().to_string(), "--out", &out.display().to_string()]);
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(out).unwrap()).unwrap();
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    let column = |name: &str| batches[0].column_by_name(name).unwrap().clone();
    assert_eq!(batches[0].num_rows(), 4);
    assert_eq!(column("harness").as_string::<i32>().value(3), "rl");
    assert_eq!(column("generations").as_primitive::<UInt64Type>().value(3), 1);
    assert_eq!(column("generations").null_count() + column("error").null_count(), 1 + 3);
    let (out, file) =
        (folder.path().join("one.parquet"), folder.path().join("a.jsonl").display().to_string());
    let output = pleach(&["inspect", &file, "--out", &out.display().to_string()]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains(&file), "a file has its name in a table of one: {table}");
}
