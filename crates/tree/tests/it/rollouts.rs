//! One rollout of a file is a file of its own: what it shares with others it keeps, what others
//! sampled carries no loss in it.
use pleach_tree::{BranchTree, GenerationId, ReadOptions};

/// The second rollout goes on from a context that holds what the first sampled, evicts it, and
/// forks.
const RECORDS: &str = r#"{"t":"header","version":1,"harness":"test","fidelity":"token"}
{"t":"segment","id":0,"role":"user","origin":"human","tokens":[1,2]}
{"t":"append","context":0,"from":null,"segments":[0]}
{"t":"segment","id":1,"role":"assistant","origin":"policy","tokens":[3,4],"loss":[[0,1,0.5],[1,2,2.0]]}
{"t":"generation","id":0,"context":0,"output":[1],"rollout":"a"}
{"t":"append","context":1,"from":0,"segments":[1]}
{"t":"segment","id":2,"role":"assistant","origin":"policy","tokens":[5]}
{"t":"generation","id":1,"context":1,"output":[2],"rollout":"b"}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":1}],"by":{"kind":"policy","generation":0}}
{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[6]}
{"t":"generation","id":2,"context":2,"output":[3],"rollout":"b"}
{"t":"outcome","rollout":"a","group":"g","reward":1.0,"status":"finished"}
{"t":"outcome","rollout":"b","group":"g","reward":0.0,"status":"overlong"}
"#;

#[test]
fn each_rollout_is_read_strictly_by_itself_and_sees_what_it_saw() {
    let (tree, _) = BranchTree::read(RECORDS.as_bytes(), "two", ReadOptions::STRICT).unwrap();
    assert_eq!(tree.rollouts(), ["a", "b"]);
    for (rollout, generations) in [("a", vec![0]), ("b", vec![1, 2])] {
        let (one, report) =
            BranchTree::from_records(tree.rollout_records(rollout), rollout, ReadOptions::STRICT)
                .unwrap();
        assert!(report.diagnostics.is_empty(), "{report}");
        assert_eq!(
            one.generations().map(|generation| generation.id.0).collect::<Vec<_>>(),
            generations
        );
        assert_eq!(one.outcomes().count(), 1);
        for id in generations.into_iter().map(GenerationId) {
            assert_eq!(one.view(id).unwrap().tokens(), tree.view(id).unwrap().tokens());
            let weights = |tree: &BranchTree| {
                tree.view(id).unwrap().output().map(|token| token.weight).collect::<Vec<_>>()
            };
            assert_eq!(weights(&one), weights(&tree));
        }
    }
}
