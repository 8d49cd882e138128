//! Every sampled token knows the last eviction before it, the next one after it, and how many
//! sampled tokens lie between.
use pleach_layout::{Era, Layouts};
use pleach_tree::{BranchTree, ReadOptions};

/// Two tokens are sampled; two evictions follow each other; two tokens are sampled; the chat
/// template rewrites; one is sampled.
const RECORDS: &str = r#"{"t":"header","version":1,"harness":"test","fidelity":"token"}
{"t":"segment","id":0,"role":"user","origin":"human","tokens":[1]}
{"t":"segment","id":1,"role":"user","origin":"human","tokens":[2]}
{"t":"segment","id":2,"role":"user","origin":"human","tokens":[3]}
{"t":"append","context":0,"from":null,"segments":[0,1,2]}
{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[4,5]}
{"t":"generation","id":0,"context":0,"output":[3]}
{"t":"append","context":1,"from":0,"segments":[3]}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":0}]}
{"t":"evict","context":3,"from":2,"evicted":[{"segment":1}]}
{"t":"segment","id":4,"role":"assistant","origin":"policy","tokens":[6,7]}
{"t":"generation","id":1,"context":3,"output":[4]}
{"t":"evict","context":4,"from":3,"evicted":[{"segment":3}],"by":{"kind":"rule","name":"chat_template"}}
{"t":"append","context":5,"from":4,"segments":[4]}
{"t":"segment","id":5,"role":"assistant","origin":"policy","tokens":[8]}
{"t":"generation","id":2,"context":5,"output":[5]}
"#;

#[test]
fn of_two_evictions_in_a_row_the_first_comes_next_and_the_second_came_last() {
    let (tree, _) = BranchTree::read(RECORDS.as_bytes(), "eras", ReadOptions::STRICT).unwrap();
    let era = |generation, offset, eviction, since, next, until| Era {
        generation,
        offset,
        eviction,
        since,
        next,
        until,
    };
    let expected = [
        era(0, 0, None, None, Some(2), Some(1)),
        era(0, 1, None, None, Some(2), Some(0)),
        era(1, 0, Some(3), Some(0), None, None),
        era(1, 1, Some(3), Some(1), None, None),
        era(2, 0, Some(3), Some(2), None, None),
    ];
    assert_eq!(Layouts::new(&tree).unwrap().eras(), expected);
}

#[test]
fn a_chat_template_is_counted_apart_from_the_harness() {
    let (tree, _) = BranchTree::read(RECORDS.as_bytes(), "eras", ReadOptions::STRICT).unwrap();
    let account = Layouts::new(&tree).unwrap().account().unwrap();
    assert_eq!((account.stats.evictions, account.evictions.len()), (2, 3));
}

#[test]
fn sizes_of_segments_are_known_without_laying_them_out() {
    let (tree, _) = BranchTree::read(RECORDS.as_bytes(), "eras", ReadOptions::STRICT).unwrap();
    let layouts = Layouts::new(&tree).unwrap();
    let laid_out: Vec<(usize, usize)> = layouts
        .segments()
        .unwrap()
        .sequences
        .iter()
        .map(|sequence| (sequence.len(), sequence.terms.len()))
        .collect();
    assert_eq!(layouts.segment_sizes(), laid_out);
}
