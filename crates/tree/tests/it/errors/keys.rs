//! Keys that are not known, and values that contradict each other.
use pleach_tree::{BranchTree, ReadOptions};

use super::{lenient, story, strict};

#[test]
fn a_misspelt_key_is_an_error_with_the_right_spelling_and_lenient_reading_takes_it() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[11]}
{"t":"generation","id":1,"context":1,"output":[3],"tread":"side"}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":1}],"replacment":{"kind":"none","segments":[]}}
"#,
    );
    let errors = strict(&file);
    let thread = "f.jsonl:9: tread: error[misspelt-key]: key \"tread\" is not known, but \"thread\" is; spell it so";
    let replacement = "f.jsonl:10: replacment: error[misspelt-key]: key \"replacment\" is not known, but \"replacement\" is";
    assert!(errors.contains(thread) && errors.contains(replacement), "{errors}");
    let (tree, report) = BranchTree::read(&file[..], "f.jsonl", ReadOptions::LENIENT).unwrap();
    assert_eq!(tree.generations().nth(1).unwrap().thread, "side");
    assert_eq!(report.diagnostics.len(), 2, "{report}");
}

#[test]
fn a_misspelt_key_whose_value_does_not_fit_the_right_one_names_that() {
    let found = lenient(story(
        r#"{"t":"generation","id":1,"context":1,"output":[],"tread":7}
"#,
    ));
    assert!(found.contains("f.jsonl:8: tread: repaired[field]: invalid type"), "{found}");
    assert!(!found.contains("generation 1"), "the record is left out: {found}");
}

#[test]
fn a_key_of_ones_own_is_kept_and_named_once_and_one_with_x_before_it_passes_without_a_word() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"user","origin":"human","tokens":[5],"note":1,"x_cost":2}
{"t":"segment","id":4,"role":"user","origin":"human","tokens":[6],"note":2}
"#,
    );
    let (tree, report) = BranchTree::read(&file[..], "f.jsonl", ReadOptions::STRICT).unwrap();
    assert_eq!(
        report.to_string(),
        "f.jsonl:8: note: warning[unknown-key]: key \"note\" is not known (2 in the file); it is \
         kept and written back, and nothing reads it; name a key of your own with x_ before it"
    );
    let mut written = Vec::new();
    tree.write(&mut written).unwrap();
    assert!(String::from_utf8(written).unwrap().contains("\"note\":2"));
}

#[test]
fn segments_of_a_replacement_by_nothing_and_a_call_that_no_model_sampled_are_errors() {
    let file = story(
        r#"{"t":"segment","id":3,"role":"user","origin":"harness","tokens":[7]}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":1}],"replacement":{"kind":"none","segments":[3]}}
{"t":"segment","id":4,"role":"assistant","origin":"environment","tokens":[8]}
{"t":"generation","id":1,"context":2,"output":[4]}
"#,
    );
    let errors = strict(&file);
    assert!(errors.contains("f.jsonl:9: replacement.kind: error[segments-of-none]"), "{errors}");
    assert!(errors.contains("f.jsonl:11: output: error[not-sampled]"), "{errors}");
    let (tree, _) = BranchTree::read(&file[..], "f.jsonl", ReadOptions::LENIENT).unwrap();
    assert_eq!(tree.views().nth(1).unwrap().tokens(), [5, 6, 7, 7, 9, 10, 8]);
}

#[test]
fn of_two_slips_of_one_key_the_first_is_read_so_and_the_other_stays() {
    let file = story(
        r#"{"t":"generation","id":1,"context":1,"output":[],"tread":"a","thred":"b"}
"#,
    );
    let (tree, report) = BranchTree::read(&file[..], "f.jsonl", ReadOptions::LENIENT).unwrap();
    assert_eq!(tree.generations().nth(1).unwrap().thread, "a");
    assert!(report.to_string().contains("thred: warning[unknown-key]"), "{report}");
    let mut written = Vec::new();
    tree.write(&mut written).unwrap();
    assert!(BranchTree::read(&written[..], "written", ReadOptions::STRICT).is_ok());
}
