//! Contract: records made of nothing but requests are sound, and every generation's live view is
//! its request, token for token; a request that does not continue the one before is a junction, and
//! a token that both share at either end keeps its identity.
use pleach_tree::{
    BranchTree, Fidelity, GenerationId, Header, Operation, ReadOptions, Request,
    records_of_requests,
};
use proptest::prelude::*;

fn request(prompt: &[u32], output: &[u32]) -> Request {
    Request { prompt: prompt.to_vec(), output: output.to_vec(), logprobs: None }
}

fn tree(requests: &[Request]) -> BranchTree {
    let header = Header::new("requests", Fidelity::Inferred);
    let records = records_of_requests(header, "r0", requests).unwrap();
    BranchTree::from_records(records, "requests", ReadOptions::STRICT).unwrap().0
}

fn assert_views(tree: &BranchTree, requests: &[Request]) {
    assert_eq!(tree.generation_count(), requests.len());
    for (index, request) in requests.iter().enumerate() {
        let view = tree.view(GenerationId(index as u32)).unwrap();
        assert_eq!(
            view.tokens(),
            [request.prompt.as_slice(), &request.output].concat(),
            "request {index}"
        );
        assert_eq!(view.context().tokens(), request.prompt.len());
    }
}

fn junctions(tree: &BranchTree) -> usize {
    tree.contexts()
        .filter(|context| {
            matches!(tree.operation(context.id().unwrap()), Some(Operation::Evict(_)))
        })
        .count()
}

#[test]
fn a_conversation_that_only_grows_has_no_junction() {
    let requests = [
        request(&[1, 2], &[3]),
        request(&[1, 2, 3, 4], &[5, 6]),
        request(&[1, 2, 3, 4, 5, 6], &[7]),
    ];
    let tree = tree(&requests);
    assert_views(&tree, &requests);
    assert_eq!(junctions(&tree), 0);
}

#[test]
fn what_stands_before_and_behind_the_hole_survives_under_its_identity() {
    let requests = [request(&[1, 2, 3, 4], &[5, 6]), request(&[1, 9, 4, 5, 6, 7], &[8])];
    let tree = tree(&requests);
    assert_views(&tree, &requests);
    let spans = |generation| {
        let view = tree.view(GenerationId(generation)).unwrap();
        let ids =
            |span: pleach_tree::Span| (span.start..span.end).map(move |at| (span.segment.0, at));
        view.context_spans()
            .into_iter()
            .chain(view.output_spans())
            .flat_map(ids)
            .collect::<Vec<_>>()
    };
    let (before, after) = (spans(0), spans(1));
    assert_eq!(junctions(&tree), 1);
    assert_eq!(after[0], before[0]);
    assert_eq!(
        after[2..5],
        before[3..],
        "what the environment adds behind them takes nothing from the survivors"
    );
    assert!(
        [1, 5, 6].iter().all(|&at| !before.contains(&after[at])),
        "the summary, the next turn and its output are new"
    );
    let requests = [request(&[1, 2, 3, 4], &[5, 6]), request(&[1, 9, 4, 5, 6], &[8])];
    let kept = self::tree(&requests);
    assert_views(&kept, &requests);
    let view = kept.view(GenerationId(1)).unwrap();
    assert_eq!(
        view.context_spans().iter().filter(|span| span.segment.0 == 1).count(),
        1,
        "the output behind the hole survives"
    );
}

/// How many tokens of the view before stand behind the common start of the last view.
fn survivors(requests: &[Request]) -> usize {
    let tree = tree(requests);
    assert_views(&tree, requests);
    let ids = |generation| {
        let view = tree.view(GenerationId(generation)).unwrap();
        let of =
            |span: pleach_tree::Span| (span.start..span.end).map(move |at| (span.segment.0, at));
        view.context_spans().into_iter().chain(view.output_spans()).flat_map(of).collect::<Vec<_>>()
    };
    let (before, after) = (ids(requests.len() as u32 - 2), ids(requests.len() as u32 - 1));
    let start = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    after[start..].iter().filter(|id| before.contains(id)).count()
}

#[test]
fn the_longest_end_of_the_view_that_stands_in_the_request_survives_and_never_all_of_the_rest() {
    let after =
        |prompt: &[u32]| survivors(&[request(&[5, 6, 1], &[2, 3, 2, 3]), request(prompt, &[4])]);
    assert_eq!(after(&[5, 0, 2, 3, 2, 3, 9]), 4);
    assert_eq!(after(&[5, 0, 3, 2, 3, 7, 2, 3]), 3, "a longer one before a shorter one");
    assert_eq!(after(&[5, 0, 2, 3, 7, 2, 3, 9]), 2);
    assert_eq!(after(&[5, 0, 9]), 0);
    assert_eq!(after(&[5, 6]), 0);
    assert_eq!(
        after(&[5, 8, 6, 1, 2, 3, 2, 3]),
        5,
        "behind an insertion all but one token that has to go"
    );
}

#[test]
fn an_insertion_is_a_junction_too() {
    let requests = [request(&[1, 2], &[3]), request(&[1, 7, 2, 3], &[4])];
    let tree = tree(&requests);
    assert_views(&tree, &requests);
    assert_eq!(junctions(&tree), 1);
}

#[test]
fn log_probabilities_are_kept() {
    let requests = [Request { logprobs: Some(vec![-0.5, -1.0]), ..request(&[1], &[2, 3]) }];
    let tree = tree(&requests);
    let output = tree.generation(GenerationId(0)).unwrap().output[0];
    assert_eq!(tree.segment(output).unwrap().logprobs, Some(vec![-0.5, -1.0]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_requests_become_sound_records_with_the_same_views(
        requests in prop::collection::vec(
            (prop::collection::vec(0..3_u32, 1..8), prop::collection::vec(0..3_u32, 0..4)),
            0..6,
        )
    ) {
        let requests: Vec<Request> = requests.iter().map(|(prompt, output)| request(prompt, output)).collect();
        assert_views(&tree(&requests), &requests);
    }
}
