//! Contract: rows that live after an eviction do not see what left in the exact layout, see it all
//! the same in `full`, and stand behind the hole where a view is laid out whole.
use std::path::Path;

use pleach_layout::{EvictionPlace, GenerationPlace, LayoutKind, Layouts};
use pleach_tree::{BranchTree, ContextId, GenerationId, ReadOptions};

/// A prompt, two sampled tokens, an eviction of the prompt's middle, and one more sampled token.
fn tree(cache: &str) -> BranchTree {
    let records = format!(
        r#"{{"t":"header","version":1,"harness":"example","fidelity":"token","cache":"{cache}"}}
{{"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}}
{{"t":"append","context":0,"from":null,"segments":[0]}}
{{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}}
{{"t":"generation","id":0,"context":0,"output":[1]}}
{{"t":"append","context":1,"from":0,"segments":[1]}}
{{"t":"evict","context":2,"from":1,"evicted":[{{"segment":0,"tokens":[1,2]}}]}}
{{"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[10]}}
{{"t":"generation","id":1,"context":2,"output":[2]}}
"#
    );
    BranchTree::read(records.as_bytes(), "test.jsonl", ReadOptions::STRICT).unwrap().0
}

fn places(cache: &str, kind: LayoutKind) -> (Vec<GenerationPlace>, Vec<EvictionPlace>) {
    let tree = tree(cache);
    let layouts = Layouts::new(&tree).unwrap();
    let layout = layouts.layout(kind).unwrap();
    (layouts.generation_places(&layout), layouts.eviction_places(&layout))
}

#[test]
fn every_layout_says_where_its_generations_and_evictions_stand() {
    for (cache, kind, [first, second], rows, keys) in [
        // 5 6 7 8 9, and behind the hole 7 8 9 10.
        ("reprefill", LayoutKind::Packed, [(0, 0), (0, 5)], (0, 5..9), Some(1..2)),
        // 5 6 7 8 9, and 5 7 8 9 10, whose first segment the hole cuts.
        ("reprefill", LayoutKind::Segments, [(0, 3), (1, 4)], (1, 0..5), None),
        // 5 7 8 9 10.
        ("reprefill", LayoutKind::Compressed, [(0, 2), (0, 4)], (0, 0..5), None),
        // 5 6 7 8 9 10.
        ("reprefill", LayoutKind::Full, [(0, 0), (0, 5)], (0, 5..6), Some(1..2)),
        ("kv_evict", LayoutKind::Packed, [(0, 3), (0, 5)], (0, 5..6), Some(1..2)),
    ] {
        let (generations, evictions) = places(cache, kind);
        let generation =
            |id, (sequence, row)| GenerationPlace { generation: GenerationId(id), sequence, row };
        assert_eq!(generations, [generation(0, first), generation(1, second)], "{cache} {kind:?}");
        let (sequence, rows) = rows;
        let keys = keys.into_iter().collect();
        let eviction = EvictionPlace { context: ContextId(2), sequence, rows, keys };
        assert_eq!(evictions, [eviction], "{cache} {kind:?}");
    }
}

#[test]
fn what_left_is_hidden_from_the_rows_after_it_in_every_vector_but_not_in_full() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let Ok(entries) = folder.read_dir() else {
        eprintln!("skipped: the conformance vectors are not at {}", folder.display());
        return;
    };
    let (mut hidden, mut stale) = (0, 0);
    let paths = entries.map(|entry| entry.unwrap().path().join("records.jsonl"));
    for path in paths.filter(|path| path.exists()) {
        let (tree, _) = BranchTree::open(&path, ReadOptions::STRICT).unwrap();
        let layouts = Layouts::new(&tree).unwrap();
        for kind in [LayoutKind::Packed, LayoutKind::Full] {
            let layout = layouts.layout(kind).unwrap();
            for place in layouts.eviction_places(&layout) {
                let sequence = &layout.sequences[place.sequence];
                for key in place.keys.iter().cloned().flatten() {
                    for row in place.rows.clone() {
                        let seen = sequence.sees(row, key);
                        assert_eq!(
                            seen,
                            kind == LayoutKind::Full,
                            "{} {kind:?}: row {row}, key {key}, {}",
                            path.display(),
                            place.context
                        );
                        *(if seen { &mut stale } else { &mut hidden }) += 1;
                    }
                }
            }
        }
    }
    assert!(hidden > 0 && stale > 0, "{hidden} hidden and {stale} stale pairs");
}
