//! Contract: the parts of what one record or one call said are one message, and where pieces of one
//! text have different authors nothing stands between them that none of them wrote.
use std::path::Path;

use pleach_harness::convert;
use pleach_render::Renderer;
use pleach_tree::{BranchTree, GenerationId, Origin, ReadOptions, Record};

const BODY: &str = "1. Request: the import must accept files that Excel saved.
2. Cause: they begin with a UTF-8 byte order mark, so the first column was read as \"\\ufeffdate\".
3. Done: src/import.py opens files with encoding \"utf-8-sig\"; tests/test_import.py has a new test_byte_order_mark.
4. Next: run the tests; export.py writes without a mark and stays as it is.";
const ANALYSIS: &str = "The user wants Excel files to import. The cause is a byte order mark before the first column name. \
    The reader is changed, a test is written and has not been run.";
const CALL: &str = r#"{"name": "Edit", "arguments": {"file_path": "/home/mara/ledger/tests/test_import.py", "old_string": "def test_missing_column(", "new_string": "def test_byte_order_mark(tmp_path):\n    path = tmp_path / \"excel.csv\"\n    path.write_bytes(b\"\\xef\\xbb\\xbfdate,amount,note\\r\\n2026-01-30,4.50,tea\\r\\n\")\n    assert next(rows(path))[\"date\"] == \"2026-01-30\"\n\n\ndef test_missing_column("}}"#;

/// Bytes as tokens, as text.
fn text(ids: &[u32]) -> String {
    let mut bytes = Vec::new();
    for &id in ids {
        match u8::try_from(id) {
            Ok(byte) => bytes.push(byte),
            Err(_) if id == 256 => bytes.extend(b"<|im_start|>"),
            Err(_) => bytes.extend(b"<|im_end|>"),
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn rendered(tree: &BranchTree) -> BranchTree {
    let records = Renderer::bytes().render(tree).unwrap().expect("there is text").records;
    BranchTree::from_records(records, "rendered", ReadOptions::STRICT)
        .map_err(|error| error.to_string())
        .unwrap()
        .0
}

fn tree(lines: &[&str]) -> BranchTree {
    let header = r#"{"t":"header","version":1,"harness":"test","fidelity":"message"}"#;
    let text = [&[header], lines].concat().join("\n") + "\n";
    BranchTree::read(text.as_bytes(), "session.jsonl", ReadOptions::STRICT)
        .map_err(|error| error.to_string())
        .unwrap()
        .0
}

fn prompt(tree: &BranchTree, generation: u32) -> String {
    let view = tree.view(GenerationId(generation)).unwrap();
    text(&view.tokens()[..view.context().tokens()])
}

fn compacted() -> (BranchTree, GenerationId) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sessions/compacted.jsonl");
    let records = convert(&file, ReadOptions::STRICT).unwrap().records;
    let tree =
        rendered(&BranchTree::from_records(records, "session", ReadOptions::STRICT).unwrap().0);
    let summariser = tree.records().iter().find_map(|record| match record {
        Record::Evict(evict) => evict.by.as_ref()?.generation,
        _ => None,
    });
    (tree, summariser.expect("the policy wrote the summary"))
}

#[test]
fn what_the_summariser_said_is_one_text_of_its_own() {
    let (tree, summariser) = compacted();
    let output = &tree.generation(summariser).unwrap().output;
    assert_eq!(output.len(), 6);
    let said: Vec<u32> =
        output.iter().flat_map(|&id| tree.segment(id).unwrap().tokens.clone().unwrap()).collect();
    assert_eq!(
        text(&said),
        format!("<analysis>\n{ANALYSIS}\n</analysis>\n\n<summary>\n{BODY}\n</summary><|im_end|>")
    );
    assert!(
        output.iter().all(|&id| tree.segment(id).unwrap().origin == Origin::Policy),
        "nothing stands between"
    );
}

#[test]
fn a_summary_in_the_policy_s_and_the_harness_s_words_is_one_message_of_the_user() {
    let (tree, summariser) = compacted();
    let next =
        tree.generations().map(|generation| generation.id).find(|id| *id > summariser).unwrap();
    let summary = format!(
        "This session is being continued from a previous conversation that ran out of context. \
         The summary below covers the earlier portion of the conversation.\n\n\
         Analysis:\n{ANALYSIS}\n\nSummary:\n{BODY}\n\n\
         If you need specific details from before compaction, read the full transcript at: \
         /home/mara/.claude/projects/ledger/5f0c2d1e.jsonl"
    );
    let said = format!("Now a test with such a file.\n<tool_call>\n{CALL}\n</tool_call>");
    let result = "The file /home/mara/ledger/tests/test_import.py has been updated.";
    let expected = [("user", summary.as_str()), ("assistant", &said), ("tool", result)]
        .map(|(role, content)| format!("<|im_start|>{role}\n{content}<|im_end|>\n"));
    assert_eq!(prompt(&tree, next.0), expected.concat() + "<|im_start|>assistant\n");
}

#[test]
fn a_call_s_text_does_not_run_on_into_what_stands_behind_a_part_of_it() {
    let tree = tree(&[
        r#"{"t":"segment","id":0,"role":"user","origin":"human","text":"Q","source":{"file":0,"line":1,"key":"q"}}"#,
        r#"{"t":"append","context":0,"from":null,"segments":[0]}"#,
        r#"{"t":"segment","id":1,"role":"assistant","origin":"policy","text":"S","open":true,"source":{"file":0,"line":2,"key":"m"}}"#,
        r#"{"t":"segment","id":2,"role":"assistant","origin":"policy","text":"</s>","source":{"file":0,"line":2,"key":"m"}}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[1,2]}"#,
        r#"{"t":"segment","id":3,"role":"user","origin":"harness","text":"Summary: ","open":true,"source":{"file":0,"line":3,"key":"s"}}"#,
        r#"{"t":"evict","context":1,"from":0,"evicted":[{"segment":0}],"replacement":{"kind":"summary","segments":[3,1],"place":"head"},"by":{"kind":"policy","generation":0}}"#,
        r#"{"t":"segment","id":4,"role":"user","origin":"human","text":"U","source":{"file":0,"line":4,"key":"u"}}"#,
        r#"{"t":"append","context":2,"from":1,"segments":[4]}"#,
        r#"{"t":"generation","id":1,"context":2,"output":[]}"#,
    ]);
    assert_eq!(
        prompt(&rendered(&tree), 1),
        "<|im_start|>user\nSummary: S<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn parts_of_one_record_are_one_message_and_those_of_two_are_two() {
    let tree = tree(&[
        r#"{"t":"segment","id":0,"role":"system","origin":"harness","text":"one","source":{"file":0,"line":1,"key":"s"}}"#,
        r#"{"t":"segment","id":1,"role":"system","origin":"harness","text":"two","source":{"file":0,"line":1,"key":"s"}}"#,
        r#"{"t":"segment","id":2,"role":"user","origin":"harness","text":"A","source":{"file":0,"line":2,"key":"u"}}"#,
        r#"{"t":"segment","id":3,"role":"user","origin":"human","text":"B","source":{"file":0,"line":2,"key":"u"}}"#,
        r#"{"t":"segment","id":4,"role":"user","origin":"human","text":"C","source":{"file":1,"line":2,"key":"u"}}"#,
        r#"{"t":"segment","id":5,"role":"user","origin":"human","text":"D"}"#,
        r#"{"t":"segment","id":6,"role":"user","origin":"human","text":"E"}"#,
        r#"{"t":"append","context":0,"from":null,"segments":[0,1,2,3,4,5,6]}"#,
        r#"{"t":"generation","id":0,"context":0,"output":[]}"#,
    ]);
    let expected = ["system\none\n\ntwo", "user\nA\n\nB", "user\nC", "user\nD", "user\nE"]
        .map(|message| format!("<|im_start|>{message}<|im_end|>\n"));
    assert_eq!(prompt(&rendered(&tree), 0), expected.concat() + "<|im_start|>assistant\n");
}
