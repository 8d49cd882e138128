//! What a tree tells of a small rollout: contexts and the operations between them, the view of
//! every generation, DOT.
use insta::assert_snapshot;
use pleach_tree::{
    BranchTree, ContextId, Event, GenerationId, Operation, ReadOptions, SegmentId, Span,
};

/// A question, a call and its result; the result is cleared, a summariser folds everything, the
/// span comes back.
const ROLLOUT: &str = r#"{"t":"header","version":1,"harness":"test","fidelity":"token"}
{"t":"segment","id":0,"role":"system","origin":"harness","tokens":[1,2]}
{"t":"segment","id":1,"role":"user","origin":"human","tokens":[3]}
{"t":"append","context":0,"from":null,"segments":[0,1]}
{"t":"segment","id":2,"role":"assistant","origin":"external_model","tokens":[4]}
{"t":"segment","id":3,"role":"assistant","origin":"policy","tokens":[5,6,7],"loss":[[0,1,0.5],[1,3,1.0]]}
{"t":"generation","id":0,"context":0,"output":[2,3],"unrecorded":["reasoning"]}
{"t":"segment","id":4,"role":"tool","origin":"environment","tokens":[8,9,10,11]}
{"t":"append","context":1,"from":0,"segments":[2,3,4]}
{"t":"segment","id":5,"role":"tool","origin":"harness","tokens":[12]}
{"t":"evict","context":2,"from":1,"evicted":[{"segment":4,"tokens":[1,3]}],"replacement":{"kind":"placeholder","segments":[5]},"by":{"kind":"rule","name":"clear"}}
{"t":"fork","context":3,"from":2,"reason":"summarizer"}
{"t":"segment","id":6,"role":"user","origin":"harness","tokens":[13]}
{"t":"append","context":4,"from":3,"segments":[6]}
{"t":"segment","id":7,"role":"assistant","origin":"policy","tokens":[14,15]}
{"t":"generation","id":1,"context":4,"output":[7],"thread":"summariser \"a\""}
{"t":"evict","context":5,"from":2,"evicted":[{"segment":1},{"segment":3},{"segment":4}],"replacement":{"kind":"index","segments":[7],"place":"head"},"by":{"kind":"policy","generation":1}}
{"t":"append","context":6,"from":5,"segments":[4]}
{"t":"segment","id":8,"role":"assistant","origin":"policy","tokens":[16]}
{"t":"generation","id":2,"context":6,"output":[8]}
{"t":"replace","context":7,"from":6,"segments":[0,7]}
{"t":"outcome","rollout":"r0","group":"g","reward":1.0,"status":"finished"}
"#;

fn rollout() -> BranchTree {
    let (tree, report) =
        BranchTree::read(ROLLOUT.as_bytes(), "rollout.jsonl", ReadOptions::STRICT).unwrap();
    assert_eq!(report.diagnostics, []);
    tree
}

fn written(spans: impl IntoIterator<Item = Span>) -> String {
    let written: Vec<String> = spans
        .into_iter()
        .map(|span| format!("{}[{}..{}]", span.segment.0, span.start, span.end))
        .collect();
    written.join(" ")
}

#[test]
fn a_view_is_the_tokens_of_the_context_and_then_of_the_output() {
    let tree = rollout();
    let views: Vec<String> = tree
        .views()
        .map(|view| {
            assert_eq!((view.tokens().len(), view.is_empty()), (view.len(), false));
            let (context, output) = (written(view.context_spans()), written(view.output_spans()));
            format!(
                "{} sees {context} says {output} which is {:?}",
                view.generation().id,
                view.tokens()
            )
        })
        .collect();
    assert_snapshot!(views.join("\n"), @"
    generation 0 sees 0[0..2] 1[0..1] says 2[0..1] 3[0..3] which is [1, 2, 3, 4, 5, 6, 7]
    generation 1 sees 0[0..2] 1[0..1] 2[0..1] 3[0..3] 4[0..1] 5[0..1] 4[3..4] 6[0..1] says 7[0..2] which is [1, 2, 3, 4, 5, 6, 7, 8, 12, 11, 13, 14, 15]
    generation 2 sees 0[0..2] 7[0..2] 2[0..1] 5[0..1] 4[0..4] says 8[0..1] which is [1, 2, 14, 15, 4, 12, 8, 9, 10, 11, 16]
    ");
}

#[test]
fn output_tokens_carry_their_declared_weight_and_none_where_another_wrote_them() {
    let tree = rollout();
    let weights = |id| {
        tree.view(GenerationId(id))
            .unwrap()
            .output()
            .map(|token| (token.token, token.offset, token.weight))
            .collect::<Vec<_>>()
    };
    assert_eq!(weights(0), [(4, 0, None), (5, 1, Some(0.5)), (6, 2, Some(1.0)), (7, 3, Some(1.0))]);
    assert_eq!(weights(1), [(14, 0, Some(1.0)), (15, 1, Some(1.0))]);
    assert_eq!(tree.owner(SegmentId(7)), Some(GenerationId(1)));
    assert_eq!(tree.owner(SegmentId(4)), None);
}

#[test]
fn a_context_knows_what_made_it_and_what_that_took_out() {
    let tree = rollout();
    let contexts: Vec<String> = tree
        .contexts()
        .map(|context| {
            let id = context.id().unwrap();
            let operation = match tree.operation(id).unwrap() {
                Operation::Append(_) => "append",
                Operation::Evict(_) => "evict",
                Operation::Replace(_) => "replace",
                Operation::Fork(_) => "fork",
            };
            assert_eq!(context.root(), Some(ContextId(0)));
            let from = tree.parent(id).map_or("nothing".to_string(), |from| from.to_string());
            let (list, removed) =
                (written(tree.spans(id).unwrap()), written(tree.removed(id).iter().copied()));
            let at = tree.context_location(id).unwrap();
            format!(
                "{at}: {operation} of {from} makes {id}: {list} ({} tokens), takes out [{removed}]",
                context.tokens()
            )
        })
        .collect();
    assert_snapshot!(contexts.join("\n"), @"
    rollout.jsonl:4: append of nothing makes context 0: 0[0..2] 1[0..1] (3 tokens), takes out []
    rollout.jsonl:9: append of context 0 makes context 1: 0[0..2] 1[0..1] 2[0..1] 3[0..3] 4[0..4] (11 tokens), takes out []
    rollout.jsonl:11: evict of context 1 makes context 2: 0[0..2] 1[0..1] 2[0..1] 3[0..3] 4[0..1] 5[0..1] 4[3..4] (10 tokens), takes out [4[1..3]]
    rollout.jsonl:12: fork of context 2 makes context 3: 0[0..2] 1[0..1] 2[0..1] 3[0..3] 4[0..1] 5[0..1] 4[3..4] (10 tokens), takes out []
    rollout.jsonl:14: append of context 3 makes context 4: 0[0..2] 1[0..1] 2[0..1] 3[0..3] 4[0..1] 5[0..1] 4[3..4] 6[0..1] (11 tokens), takes out []
    rollout.jsonl:17: evict of context 2 makes context 5: 0[0..2] 7[0..2] 2[0..1] 5[0..1] (6 tokens), takes out [1[0..1] 3[0..3] 4[0..1] 4[3..4]]
    rollout.jsonl:18: append of context 5 makes context 6: 0[0..2] 7[0..2] 2[0..1] 5[0..1] 4[0..4] (10 tokens), takes out []
    rollout.jsonl:21: replace of context 6 makes context 7: 0[0..2] 7[0..2] (4 tokens), takes out [2[0..1] 5[0..1] 4[0..4]]
    ");
    assert_eq!(tree.children(ContextId(2)), [ContextId(3), ContextId(5)]);
    assert_eq!(tree.children(ContextId(7)), []);
}

#[test]
fn events_stand_in_file_order_and_records_know_their_lines() {
    let tree = rollout();
    let events: Vec<String> = tree
        .events()
        .iter()
        .map(|event| match event {
            Event::Context(id) => id.to_string(),
            Event::Generation(id) => id.to_string(),
        })
        .collect();
    assert_snapshot!(events.join(", "), @"context 0, generation 0, context 1, context 2, context 3, context 4, generation 1, context 5, context 6, generation 2, context 7");
    assert_eq!(tree.segment_location(SegmentId(4)).unwrap().to_string(), "rollout.jsonl:8");
    assert_eq!(tree.generation_location(GenerationId(2)).unwrap().to_string(), "rollout.jsonl:20");
    assert_eq!(tree.outcomes().map(|outcome| outcome.reward).collect::<Vec<_>>(), [1.0]);
    assert_eq!(
        (tree.view(GenerationId(9)).is_none(), tree.context(ContextId(9)).is_none()),
        (true, true)
    );
}

#[test]
fn dot_shows_contexts_with_their_sizes_and_the_operations_between_them() {
    assert_snapshot!(rollout().dot(), @r#"
    digraph {
        0 [ shape=box label="empty\n0 tokens"]
        1 [ shape=box label="context 0\n3 tokens\ngeneration 0 (r0/main)"]
        2 [ shape=box label="context 1\n11 tokens"]
        3 [ shape=box label="context 2\n10 tokens"]
        4 [ shape=box label="context 3\n10 tokens"]
        5 [ shape=box label="context 4\n11 tokens\ngeneration 1 (r0/summariser \"a\")"]
        6 [ shape=box label="context 5\n6 tokens"]
        7 [ shape=box label="context 6\n10 tokens\ngeneration 2 (r0/main)"]
        8 [ shape=box label="context 7\n4 tokens"]
        0 -> 1 [ label="append 2"]
        1 -> 2 [ label="append 3"]
        2 -> 3 [ label="evict 2 tokens -> placeholder"]
        3 -> 4 [ label="fork (summarizer)"]
        4 -> 5 [ label="append 1"]
        3 -> 6 [ label="evict 6 tokens -> index"]
        6 -> 7 [ label="append 1"]
        7 -> 8 [ label="replace, 6 tokens leave"]
    }
    "#);
}

#[test]
fn dot_quotes_whatever_a_name_holds() {
    let named = ROLLOUT.replace(r#"summariser \"a\""#, r#"a\\\"];\n<b>\\"#);
    let (tree, _) =
        BranchTree::read(named.as_bytes(), "rollout.jsonl", ReadOptions::STRICT).unwrap();
    assert_eq!(tree.generation(GenerationId(1)).unwrap().thread, "a\\\"];\n<b>\\");
    let dot = tree.dot().to_string();
    assert_snapshot!(dot.lines().find(|line| line.contains("generation 1")).unwrap(), @r#"    5 [ shape=box label="context 4\n11 tokens\ngeneration 1 (r0/a\\\"]; <b>\\)"]"#);
}
