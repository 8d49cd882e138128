//! Which harness wrote a file is told from its content, whatever its name.
use pleach_harness::{
    Harness, HarnessError, Input, ReadOptions, convert, convert_from, detect, detect_bytes,
};
use pleach_tree::Record;

#[test]
fn lines_tell_records_from_sessions() {
    assert_eq!(
        detect_bytes(br#"{"t":"header","version":1,"harness":"x","fidelity":"token"}"#),
        Some(Harness::Records)
    );
    let first = br#"{"type":"file-history-snapshot","messageId":"a","snapshot":{}}"#;
    assert_eq!(detect_bytes(first), Some(Harness::ClaudeCode));
    assert_eq!(
        detect_bytes(br#"{"type":"user","uuid":"a","sessionId":"s","parentUuid":null}"#),
        Some(Harness::ClaudeCode)
    );
    assert_eq!(
        detect_bytes(br#"{"type":"summary","summary":"t","leafUuid":"a"}"#),
        Some(Harness::ClaudeCode)
    );
}

#[test]
fn a_byte_order_mark_and_a_damaged_first_line_hide_nothing() {
    let text =
        b"\xef\xbb\xbf{\"type\":\"us\n\n{\"type\":\"user\",\"uuid\":\"a\",\"sessionId\":\"s\"}\n";
    assert_eq!(detect_bytes(text), Some(Harness::ClaudeCode));
}

#[test]
fn other_json_is_no_session() {
    assert_eq!(detect_bytes(b"[1,2]\n{\"type\":\"message\"}\n"), None);
    assert_eq!(detect_bytes(b""), None);
    assert_eq!(
        detect_bytes(b"{ \"t\": \"head"),
        Some(Harness::Records),
        "a cut header is still a record"
    );
}

#[test]
fn an_unknown_file_says_what_could_be_given_instead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    std::fs::write(&path, "hello\n").unwrap();
    let Err(error @ HarnessError::UnknownHarness { .. }) = convert(&path, ReadOptions::LENIENT)
    else {
        panic!("must be unknown")
    };
    assert!(error.to_string().ends_with("or name its format"));
    assert!(
        error
            .to_string()
            .contains("give eviction records, which begin with a header, a Codex CLI rollout")
    );
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
    let Err(error) = convert(folder.path().join("none.jsonl"), ReadOptions::STRICT) else {
        panic!("must fail")
    };
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
    assert!(matches!(
        convert(&path, ReadOptions::LENIENT),
        Err(HarnessError::Compressed { kind: "bzip2", .. })
    ));
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
    for (name, harness) in
        [("opencode.json", Harness::OpenCode), ("inspect_ai.json", Harness::InspectAi)]
    {
        assert_eq!(
            detect_bytes(&std::fs::read(folder.join(name)).unwrap()),
            Some(harness),
            "{name}"
        );
    }
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name),
    )
    .unwrap()
}

#[test]
fn a_file_of_which_nothing_is_of_the_format_that_is_named_is_an_error_and_no_empty_session() {
    use Harness::{AgentFold, Atif, Codex, GeminiCli, InspectAi, OpenCode, TcRag};
    let steps = br#"{"schema_version":"ATIF-v1.7","session_id":"s","steps":[{"step_id":1,"source":"user","message":"hi"}]}"#;
    for (bytes, harnesses) in [
        (fixture("rewinds.jsonl"), &[Atif, TcRag, AgentFold, Codex, OpenCode, InspectAi][..]),
        (steps.to_vec(), &[OpenCode, GeminiCli, InspectAi, TcRag, AgentFold]),
    ] {
        for &harness in harnesses {
            for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
                let input = Input::memory("log.json", bytes.clone(), []);
                match convert_from(&input, Some(harness), options) {
                    Err(error @ HarnessError::OtherFormat { .. }) => {
                        assert!(error.to_string().contains(harness.name()))
                    }
                    other => panic!("{harness:?}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn faults_of_a_file_that_another_harness_wrote_are_one_error_that_says_what_it_looks_like() {
    use Harness::{GeminiCli, MemexRl, OpenHands, Pi, QwenCode, Records, Requests, Rl};
    let session = fixture("rewinds.jsonl");
    for harness in [GeminiCli, MemexRl, OpenHands, Pi, QwenCode, Records, Requests, Rl] {
        let input = Input::memory("s.jsonl", session.clone(), []);
        let error = convert_from(&input, Some(harness), ReadOptions::STRICT).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "s.jsonl: nothing in it is of the format {} ({}); it looks like a Claude Code session; leave the format (the `harness` of `convert_from`) away to tell it from the content",
                harness.name(),
                harness.title()
            )
        );
    }
}

#[test]
fn a_run_that_does_not_say_which_harness_made_it_is_read_as_the_one_that_is_named() {
    let run = br#"{"question":"where?","steps":[{"output":"look","observation":"a desk"}]}"#;
    for harness in [Harness::TcRag, Harness::AgentFold] {
        let input = Input::memory("run.json", run.to_vec(), []);
        assert!(matches!(detect(&input), Err(HarnessError::UnknownHarness { .. })));
        assert!(convert_from(&input, Some(harness), ReadOptions::STRICT).is_ok(), "{harness:?}");
    }
}

#[test]
fn text_of_sixteen_bits_is_told_to_be_converted() {
    for order in [u16::to_le_bytes, u16::to_be_bytes] {
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}{{\"type\":\"user\"}}\n");
            let bytes: Vec<u8> = text.encode_utf16().flat_map(order).collect();
            let error = detect(&Input::memory("log.jsonl", bytes, [])).unwrap_err().to_string();
            assert!(error.contains("log.jsonl: is UTF-16 text; convert it to UTF-8"), "{error}");
        }
    }
}

#[test]
fn what_a_stream_gives_is_there_for_detection_and_for_conversion() {
    let bytes = fixture("rewinds.jsonl");
    let whole =
        convert_from(&Input::memory("s.jsonl", bytes.clone(), []), None, ReadOptions::STRICT)
            .unwrap();
    let input = Input::stream("standard input", std::io::Cursor::new(bytes)).unwrap();
    let read = convert_from(&input, Some(detect(&input).unwrap()), ReadOptions::STRICT).unwrap();
    assert_eq!(read.records[1..], whole.records[1..]);
}

/// A file of each program that is known and not read, with what it is called.
const UNREAD: &[(&str, &str)] = &[
    (
        r#"{"type":"session_start","id":"d","title":"t","owner":"o","version":2,"cwd":"/w"}
{"type":"message","id":"m","parentId":null,"timestamp":"2026-06-01T10:00:00Z","message":{"role":"user","content":[]}}"#,
        "Factory Droid",
    ),
    (
        r#"{"type":"session.start","data":{"sessionId":"s","producer":"p"},"id":"e","timestamp":"t","parentId":null}"#,
        "Copilot CLI",
    ),
    (r#"{"requesterUsername":"a","responderUsername":"b","requests":[]}"#, "Copilot in an editor"),
    (r#"{"role":"user","message":{"content":[{"type":"text","text":"hi"}]}}"#, "Cursor"),
    (r#"{"_v":3,"composerId":"c","richText":"","conversation":[]}"#, "Cursor"),
    (r#"{"working_dir":"/w","description":"d","message_count":2,"total_tokens":9}"#, "Goose"),
    (r#"{"id":"s","working_dir":"/w","conversation":[{"role":"user"}]}"#, "Goose"),
    (r#"[{"ts":1,"type":"say","say":"text","text":"hi"}]"#, "Cline"),
    (r#"[{"role":"user","content":[{"type":"text","text":"<task>"}]}]"#, "Cline and Roo Code"),
    (r#"{"id":"o","traceId":"t","type":"GENERATION","input":[],"output":{}}"#, "Langfuse"),
    (r#"{"id":"t","observations":[{"id":"o","traceId":"t","type":"SPAN"}]}"#, "Langfuse"),
    (r#"{"id":"r","run_type":"llm","inputs":{},"outputs":{}}"#, "LangSmith"),
    (
        r#"[{"id":0,"timestamp":"t","source":"user","message":"hi","action":"message","args":{}}]"#,
        "OpenHands before its SDK",
    ),
    (
        r#"{"input_ids":[1,2],"position_ids":[0,1],"pred_index":[0],"target_id":[2],"old_log_probs":[-0.5],"advantages":[1.0],"segment_id":[0]}"#,
        "TRL",
    ),
    ("\n# aider chat started at 2026-01-01 10:00:00\n\n#### hi\n", "Aider"),
    ("SQLite format 3\0\u{10}", "a SQLite database"),
];

#[test]
fn a_file_of_a_program_that_is_known_and_not_read_is_refused_by_name_with_what_to_do() {
    for (text, title) in UNREAD {
        let indented = serde_json::from_str::<serde_json::Value>(text)
            .map(|value| serde_json::to_string_pretty(&value).unwrap());
        for text in std::iter::once((*text).to_owned()).chain(indented) {
            let input = Input::memory("log", text.into(), []);
            let error = detect(&input).unwrap_err();
            assert!(matches!(error, HarnessError::Unread { .. }), "{title}: {error}");
            assert!(error.to_string().contains(title), "{title}: {error}");
            let told = ["{\"request\":", "opencode export", "{\"input_ids\":"];
            assert!(told.iter().any(|told| error.to_string().contains(told)), "{title}: {error}");
            for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
                let named = convert_from(&input, Some(Harness::Requests), options).unwrap_err();
                assert_eq!(named.to_string(), error.to_string(), "under another name too");
            }
        }
    }
}

#[test]
fn records_that_go_over_several_lines_are_told_to_be_put_on_one() {
    for (name, harness) in [
        ("codex.jsonl", Harness::Codex),
        ("pi.jsonl", Harness::Pi),
        ("rewinds.jsonl", Harness::ClaudeCode),
    ] {
        let text = String::from_utf8(fixture(name)).unwrap();
        let indented: String = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|value| serde_json::to_string_pretty(&value).unwrap() + "\n")
            .collect();
        let input = Input::memory(name, indented.into(), []);
        for options in [ReadOptions::STRICT, ReadOptions::LENIENT] {
            let error = convert_from(&input, None, options).unwrap_err();
            assert!(
                matches!(error, HarnessError::Indented { harness: found, .. } if found == harness),
                "{error}"
            );
            assert!(error.to_string().contains(&format!("`jq -c . {name}`")), "{error}");
        }
    }
}

#[test]
fn numbers_as_python_writes_them_are_faults_at_their_key_in_every_log_that_python_writes() {
    use Harness::{
        AgentFold, Atif, InspectAi, MemexRl, Messages, MiniSweAgent, OpenHands, Requests, Rl,
        SweAgent, TcRag,
    };
    for (name, harness) in [
        ("atif.json", Atif),
        ("inspect_ai.json", InspectAi),
        ("openhands.jsonl", OpenHands),
        ("requests.jsonl", Requests),
        ("rl.jsonl", Rl),
        ("captures.jsonl", Rl),
        ("memexrl.jsonl", MemexRl),
        ("tcrag.jsonl", TcRag),
        ("agentfold.jsonl", AgentFold),
        ("messages.jsonl", Messages),
        ("swe_agent.json", SweAgent),
        ("mini_swe_agent.json", MiniSweAgent),
    ] {
        let sound = String::from_utf8(fixture(name)).unwrap();
        let text = sound.replacen('{', r#"{"odd":[1,-Infinity,NaN],"#, 1);
        let read = |text: &str, options| {
            convert_from(&Input::memory(name, text.into(), []), Some(harness), options)
        };
        let calls = |read: Result<pleach_harness::Conversion, HarnessError>| {
            let is_call = |record: &&Record| matches!(record, Record::Generation(_));
            read.unwrap().records.iter().filter(is_call).count()
        };
        let error = read(&text, ReadOptions::STRICT).unwrap_err().to_string();
        let fault = "odd[1]: error[no-number]: -Infinity is no number that JSON has (2 in this";
        assert!(error.contains(fault), "{name}: {error}");
        let lenient = calls(read(&text, ReadOptions::LENIENT));
        assert_eq!(lenient, calls(read(&sound, ReadOptions::STRICT)), "{name}");
        assert_eq!(detect_bytes(text.as_bytes()), detect_bytes(sound.as_bytes()), "{name}");
    }
}

#[test]
fn a_file_that_leaves_no_call_says_so_and_why() {
    let header = r#"{"t":"header","version":1,"harness":"x","fidelity":"token"}"#;
    let prompt = r#"{"type":"user","uuid":"a","sessionId":"s","parentUuid":null,"message":{"role":"user","content":"hi"}}"#;
    let failed =
        r#"{"request":{"messages":[{"role":"user","content":"hi"}]},"error":"overloaded"}"#;
    for (text, options, why) in [
        (header, ReadOptions::STRICT, "nothing in it stands in a context"),
        (prompt, ReadOptions::STRICT, "its 1 segments are context that no model answered"),
        (failed, ReadOptions::STRICT, "the 1 requests in it have no answer"),
        ("{\"t\":\"header\"\n", ReadOptions::LENIENT, "what it had may be among what was left out"),
    ] {
        let input = Input::memory("log.jsonl", format!("{text}\n").into(), []);
        let conversion = convert_from(&input, None, options).unwrap();
        let last = conversion.report.diagnostics.last().unwrap().to_string();
        assert!(last.starts_with("log.jsonl:1: warning[harness]: no-calls: "), "{last}");
        assert!(last.contains(why), "{last}");
    }
    let sound = convert_from(
        &Input::memory("s.jsonl", fixture("rewinds.jsonl"), []),
        None,
        ReadOptions::STRICT,
    );
    assert!(!sound.unwrap().report.to_string().contains("no-calls"));
}
