//! Which harness wrote a file is told from its content, whatever its name.
use pleach_harness::{Harness, HarnessError, ReadOptions, convert, detect_bytes};

#[test]
fn lines_tell_records_from_sessions() {
    assert_eq!(detect_bytes(br#"{"t":"header","version":1,"harness":"x","fidelity":"token"}"#), Some(Harness::Records));
    let first = br#"{"type":"file-history-snapshot","messageId":"a","snapshot":{}}"#;
    assert_eq!(detect_bytes(first), Some(Harness::ClaudeCode));
    assert_eq!(detect_bytes(br#"{"type":"user","uuid":"a","sessionId":"s","parentUuid":null}"#), Some(Harness::ClaudeCode));
    assert_eq!(detect_bytes(br#"{"type":"summary","summary":"t","leafUuid":"a"}"#), Some(Harness::ClaudeCode));
}

#[test]
fn a_byte_order_mark_and_a_damaged_first_line_hide_nothing() {
    let text = b"\xef\xbb\xbf{\"type\":\"us\n\n{\"type\":\"user\",\"uuid\":\"a\",\"sessionId\":\"s\"}\n";
    assert_eq!(detect_bytes(text), Some(Harness::ClaudeCode));
}

#[test]
fn other_json_is_no_session() {
    assert_eq!(detect_bytes(b"[1,2]\n{\"type\":\"message\"}\n"), None);
    assert_eq!(detect_bytes(b""), None);
    assert_eq!(detect_bytes(b"{ \"t\": \"head"), Some(Harness::Records), "a cut header is still a record");
}

#[test]
fn an_unknown_file_says_what_could_be_given_instead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    std::fs::write(&path, "hello\n").unwrap();
    let Err(error @ HarnessError::UnknownHarness { .. }) = convert(&path, ReadOptions::LENIENT) else {
        panic!("must be unknown")
    };
    assert!(error.to_string().ends_with("or name its format"));
    assert!(error.to_string().contains("give eviction records, which begin with a header, a Codex CLI rollout"));
}

#[test]
fn every_format_has_a_name_of_its_own_that_finds_it() {
    for &harness in Harness::ALL {
        assert_eq!(Harness::named(harness.name()).unwrap(), harness);
    }
    let error = Harness::named("abacus").unwrap_err().to_string();
    assert!(error.starts_with("abacus: is no known format; name one of records, "), "{error}");
}

#[test]
fn a_folder_is_no_session_unless_a_format_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let error = convert(folder.path(), ReadOptions::STRICT).unwrap_err();
    assert!(matches!(error, HarnessError::Folder { .. }), "{error}");
}

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let Err(error) = convert(folder.path().join("none.jsonl"), ReadOptions::STRICT) else { panic!("must fail") };
    assert!(error.to_string().contains("none.jsonl: cannot be read"));
}

#[test]
fn records_are_taken_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd-name");
    let header = r#"{"t":"header","version":1,"harness":"x","fidelity":"token","cache":"reprefill","of":[1]}"#;
    std::fs::write(&path, format!("{header}\n")).unwrap();
    let conversion = convert(&path, ReadOptions::STRICT).unwrap();
    assert_eq!(serde_json::to_string(&conversion.records[0]).unwrap(), header);
    assert!(conversion.usage.is_none());
}

#[test]
fn empty_and_compressed_files_are_told_apart_from_unknown_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    std::fs::write(&path, "\n \n").unwrap();
    assert!(matches!(convert(&path, ReadOptions::LENIENT), Err(HarnessError::Empty { .. })));
    std::fs::write(&path, b"BZh91AY").unwrap();
    assert!(matches!(convert(&path, ReadOptions::LENIENT), Err(HarnessError::Compressed { kind: "bzip2", .. })));
}

#[test]
fn every_sample_log_is_known_whichever_of_its_lines_stands_first() {
    let samples = [
        ("codex.jsonl", Harness::Codex),
        ("pi.jsonl", Harness::Pi),
        ("qwen_code.jsonl", Harness::QwenCode),
        ("gemini_cli.jsonl", Harness::GeminiCli),
        ("openhands.jsonl", Harness::OpenHands),
        ("rewinds.jsonl", Harness::ClaudeCode),
    ];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (name, harness) in samples {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        for line in text.lines() {
            // A line that several harnesses could have written is no mark of any.
            let found = detect_bytes(line.as_bytes());
            assert!(found.is_none() || found == Some(harness), "{name}: {found:?} by {line}");
        }
        assert_eq!(detect_bytes(text.as_bytes()), Some(harness), "{name}");
    }
    for (name, harness) in [("opencode.json", Harness::OpenCode), ("inspect_ai.json", Harness::InspectAi)] {
        assert_eq!(detect_bytes(&std::fs::read(folder.join(name)).unwrap()), Some(harness), "{name}");
    }
}
