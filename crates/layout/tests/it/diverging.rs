//! Contract: a term diverges exactly where its compressed prefix, read as token ids, is not its
//! live view; on every conformance vector those are the terms that have a residual there.
use std::collections::BTreeSet;
use std::path::Path;

use pleach_layout::{LayoutError, Layouts, TermId};
use pleach_tree::{BranchTree, ReadOptions};
use serde_json::Value;

fn tree(records: &str) -> BranchTree {
    BranchTree::read(records.as_bytes(), "test.jsonl", ReadOptions::STRICT).unwrap().0
}

fn found(tree: &BranchTree) -> BTreeSet<TermId> {
    let terms = Layouts::new(tree).unwrap().diverging().unwrap();
    let set: BTreeSet<TermId> = terms.iter().copied().collect();
    assert_eq!(set.len(), terms.len(), "no term is listed twice");
    set
}

/// The prefix of every compressed term against the live view, token by token.
fn naive(tree: &BranchTree) -> BTreeSet<TermId> {
    let mut diverging = BTreeSet::new();
    for sequence in Layouts::new(tree).unwrap().compressed().unwrap().sequences {
        for term in sequence.terms {
            let view = tree.view(pleach_tree::GenerationId(term.generation)).unwrap();
            let live = &view.tokens()[..view.context().tokens() + term.offset as usize];
            if sequence.tokens[..=term.source as usize] != *live {
                diverging.insert(term.id());
            }
        }
    }
    diverging
}

/// Two turns over a prompt whose middle is replaced before the second by `with`.
fn replaced(with: &str) -> BranchTree {
    tree(&format!(
        r#"{{"t":"header","version":1,"harness":"example","fidelity":"token"}}
{{"t":"segment","id":0,"role":"user","origin":"human","tokens":[5,6,7]}}
{{"t":"append","context":0,"from":null,"segments":[0]}}
{{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[8,9]}}
{{"t":"generation","id":0,"context":0,"output":[1]}}
{{"t":"append","context":1,"from":0,"segments":[1]}}
{{"t":"segment","id":2,"role":"user","origin":"harness","tokens":{with}}}
{{"t":"evict","context":2,"from":1,"evicted":[{{"segment":0,"tokens":[1,2]}}],"replacement":{{"kind":"placeholder","segments":[2]}}}}
{{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[10]}}
{{"t":"generation","id":1,"context":2,"output":[3]}}
"#
    ))
}

#[test]
fn what_stands_behind_the_hole_diverges_and_what_was_sampled_after_it_does_not() {
    assert_eq!(found(&replaced("[4]")), BTreeSet::from([TermId::new(0, 0), TermId::new(0, 1)]));
}

#[test]
fn an_eviction_that_puts_back_the_same_ids_diverges_nowhere() {
    assert_eq!(found(&replaced("[6]")), BTreeSet::new());
}

#[test]
fn diverging_terms_are_not_defined_where_survivors_keep_what_they_saw() {
    let records = r#"{"t":"header","version":1,"harness":"example","fidelity":"token","cache":"kv_evict"}
{"t":"segment","id":0,"role":"user","origin":"human","tokens":[5]}
{"t":"append","context":0,"from":null,"segments":[0]}
"#;
    assert_eq!(
        Layouts::new(&tree(records)).unwrap().diverging(),
        Err(LayoutError::DivergingUnderKvEvict)
    );
}

#[test]
fn the_vectors_name_the_same_terms_and_so_does_a_comparison_token_by_token() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let Ok(folders) = std::fs::read_dir(&root) else {
        eprintln!("skipped: no {} beside the workspace", root.display());
        return;
    };
    let mut compared = 0;
    for folder in folders.map(|entry| entry.unwrap().path()) {
        let Ok(expected) = std::fs::read(folder.join("expected.json")) else { continue };
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        let Some(residuals) = expected["models"]["llama"]["sdcc_kl"].as_array() else { continue };
        let expected: BTreeSet<TermId> = residuals
            .iter()
            .map(|term| [0, 1].map(|at| term[at].as_u64().unwrap() as u32))
            .map(|[generation, offset]| TermId::new(generation, offset))
            .collect();
        let (tree, _) =
            BranchTree::open(folder.join("records.jsonl"), ReadOptions::STRICT).unwrap();
        assert_eq!(found(&tree), expected, "{}", folder.display());
        assert_eq!(naive(&tree), expected, "{}", folder.display());
        compared += 1;
    }
    assert!(compared >= 8, "only {compared} vectors have residuals");
}
