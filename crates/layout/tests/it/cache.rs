//! Contract: a layout that was written and read again is the same to the bit, and a cache that is
//! broken is an error that names the array, not a panic later.
use pleach_layout::{Layout, LayoutKind, Layouts, Sequence, pack};
use pleach_tree::{BranchTree, ReadOptions};
use serde_json::{Value, json};

fn tree(cache: &str) -> BranchTree {
    let records = format!(
        r#"{{"t":"header","version":1,"harness":"example","fidelity":"token","cache":"{cache}"}}
{{"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}}
{{"t":"append","context":0,"from":null,"segments":[0]}}
{{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9],"loss":[[0,2,0.1]]}}
{{"t":"generation","id":0,"context":0,"output":[1]}}
{{"t":"append","context":1,"from":0,"segments":[1]}}
{{"t":"evict","context":2,"from":1,"evicted":[{{"segment":0,"tokens":[1,2]}}]}}
{{"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}}
{{"t":"generation","id":1,"context":2,"output":[2]}}
"#
    );
    BranchTree::read(records.as_bytes(), "test.jsonl", ReadOptions::STRICT).unwrap().0
}

fn packed() -> Layout {
    Layouts::new(&tree("reprefill")).unwrap().packed().unwrap()
}

#[test]
fn every_layout_comes_back_as_it_was_written() {
    let mut compared = 0;
    for cache in ["reprefill", "kv_evict"] {
        let tree = tree(cache);
        let layouts = Layouts::new(&tree).unwrap();
        for layout in LayoutKind::ALL.into_iter().filter_map(|kind| layouts.layout(kind).ok()) {
            let written = serde_json::to_string(&layout).unwrap();
            assert_eq!(serde_json::from_str::<Layout>(&written).unwrap(), layout, "{written}");
            layout.check().unwrap();
            compared += 1;
        }
    }
    assert_eq!(compared, 7);
}

#[test]
fn a_broken_sequence_is_refused_where_it_is_read() {
    let whole = serde_json::to_value(&packed().sequences[0]).unwrap();
    let refused = |path: &str, value: Value| {
        let mut broken = whole.clone();
        *broken.pointer_mut(path).unwrap() = value;
        serde_json::from_value::<Sequence>(broken).unwrap_err().to_string()
    };
    for (path, value, says) in [
        ("/positions", json!([0]), "9 tokens have 1 positions"),
        ("/ends", json!([]), "9 tokens have 0 ends"),
        ("/positions/2", json!(-1), "positions[2] = -1"),
        ("/ends/3", json!(2), "ends[3] = 2 lies outside 3..=9"),
        ("/ends/3", json!(10), "ends[3] = 10 lies outside 3..=9"),
        ("/ends/0", json!(-1), "ends[0] = -1 lies outside 0..=9"),
        ("/terms/1/source", json!(9), "terms[1] is predicted from token 9"),
    ] {
        let error = refused(path, value);
        assert!(error.contains(says), "{path}: {error}");
    }
}

#[test]
fn a_broken_layout_is_refused_where_it_is_read() {
    let whole = serde_json::to_value(packed()).unwrap();
    for (path, value, says) in [
        ("/identities", json!([]), "1 sequences have 0 lists of identities"),
        ("/identities/0", json!([]), "9 tokens have 0 identities"),
        ("/parents", json!([-1]), "9 tokens have 1 parents"),
        ("/parents/4", json!(4), "parents[4] = 4 is not before the token"),
        ("/parents/4", json!(-2), "parents[4] = -2 is not before the token"),
        ("/sequences/0/ends/8", json!(0), "ends[8] = 0 lies outside 8..=9"),
        ("/kind", json!("paced"), "unknown variant `paced`"),
    ] {
        let mut broken = whole.clone();
        *broken.pointer_mut(path).unwrap() = value;
        let error = serde_json::from_value::<Layout>(broken).unwrap_err().to_string();
        assert!(error.contains(says), "{path}: {error}");
    }
}

#[test]
fn packing_refuses_what_a_cache_would() {
    let mut sequence = packed().sequences.remove(0);
    sequence.ends[4] = i32::MAX;
    let error = pack(&[sequence], 100).unwrap_err().to_string();
    assert!(error.contains("ends[4] = 2147483647 lies outside 4..=9"), "{error}");
}

#[test]
fn a_weight_that_is_no_number_is_refused() {
    let mut sequence = packed().sequences.remove(0);
    sequence.terms[2].weight = f64::NAN;
    let error = sequence.check().unwrap_err().to_string();
    assert!(error.contains("terms[2] has the weight NaN"), "{error}");
}
