//! Contract: what is known of a rollout reaches each of its terms in any layout; overlong, empty
//! and unrewarded rollouts, and terms of other trees, give what is documented: weight 0, nothing,
//! or an error.

use crate::fixtures::{
    table::{Table, device, gradient, scalar},
    trees::{GROUP, GROUP_CUT, read},
};
use pleach_layout::{Layouts, TermId};
use pleach_train::{
    Batch, BatchTerms, CausalModel, ObjectiveError, TrainError,
    advantage::{
        AdvantageConfig, GaeConfig, Timelines, gae, group_advantages, recorded_log_probabilities,
    },
    objective::{PolicyGradientConfig, PolicySignal, Reduction},
};

fn packed(layouts: &Layouts<'_>) -> Batch {
    let sequences = layouts.packed().unwrap().sequences;
    Batch::new(&sequences, &device()).unwrap()
}

/// Group advantages at the terms of a batch.
fn advantaged(layouts: &Layouts<'_>, batch: &Batch) -> (PolicySignal, BatchTerms) {
    let timelines = Timelines::of(layouts);
    let rollouts =
        group_advantages(&AdvantageConfig::new(), &timelines.outcomes(layouts).unwrap()).unwrap();
    let (advantages, terms) = timelines.broadcast(batch.terms(), &rollouts).unwrap();
    (PolicySignal::new(advantages, recorded_log_probabilities(layouts, &terms)), terms)
}

#[test]
fn advantages_are_the_groups_and_reach_every_sampled_token() {
    for records in [GROUP, GROUP_CUT] {
        let tree = read(records);
        let layouts = Layouts::new(&tree).unwrap();
        let timelines = Timelines::of(&layouts);
        let ids = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)].map(|(a, b)| TermId::new(a, b));
        assert_eq!(timelines.rollouts[0].ids, ids);
        assert_eq!(timelines.rollouts[0].bounds, [0, 3, 5]);
        assert_eq!(timelines.rollouts[1].bounds, [0, 2]);
        let rollouts =
            group_advantages(&AdvantageConfig::new(), &timelines.outcomes(&layouts).unwrap())
                .unwrap();
        let packed = layouts.packed().unwrap().sequences;
        let batch = Batch::new(&packed, &device()).unwrap();
        let (advantages, _) = timelines.broadcast(batch.terms(), &rollouts).unwrap();
        assert_eq!(advantages, [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0]);
        let recorded = recorded_log_probabilities(&layouts, batch.terms());
        assert_eq!(recorded, [-1.5, -2.0, -1.0, -2.5, -0.5, -1.0, -3.0]);
    }
}

#[test]
fn an_overlong_rollout_is_silenced_in_its_terms() {
    let tree = read(&GROUP.replace(
        "\"reward\":0.0,\"status\":\"finished\"",
        "\"reward\":0.0,\"status\":\"overlong\"",
    ));
    let layouts = Layouts::new(&tree).unwrap();
    let timelines = Timelines::of(&layouts);
    let rollouts =
        group_advantages(&AdvantageConfig::new(), &timelines.outcomes(&layouts).unwrap()).unwrap();
    let packed = layouts.packed().unwrap().sequences;
    let batch = Batch::new(&packed, &device()).unwrap();
    let (advantages, terms) = timelines.broadcast(batch.terms(), &rollouts).unwrap();
    assert_eq!(advantages[0], 1.0, "it counts in its group's statistics");
    assert_eq!(terms.weights, [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn a_group_that_is_all_overlong_has_a_loss_and_a_gradient_of_0() {
    let tree = read(&GROUP.replace("\"status\":\"finished\"", "\"status\":\"overlong\""));
    let layouts = Layouts::new(&tree).unwrap();
    let (model, batch) = (Table::seeded(1), packed(&layouts));
    let (signal, terms) = advantaged(&layouts, &batch);
    assert_eq!(terms.weights, [0.0; 7]);
    for reduction in [Reduction::Sum, Reduction::WeightedMean] {
        let policy = PolicyGradientConfig::new().with_reduction(reduction).init();
        let hidden = model.hidden(&batch).unwrap();
        let loss = policy.forward_hidden(&model, hidden, &terms, &signal).unwrap().loss;
        assert_eq!(scalar(&loss), 0.0);
        assert!(gradient(&model, &loss).iter().all(|&value| value == 0.0));
    }
}

#[test]
fn a_rollout_that_sampled_nothing_counts_in_its_group_and_has_no_term() {
    let tree = read(&GROUP.replace("\"output\":[3]", "\"output\":[]"));
    let layouts = Layouts::new(&tree).unwrap();
    let timelines = Timelines::of(&layouts);
    assert_eq!(
        (timelines.rollouts[1].segments(), timelines.rollouts[1].bounds.as_slice()),
        (0, &[0][..])
    );
    let batch = packed(&layouts);
    let (signal, terms) = advantaged(&layouts, &batch);
    assert_eq!(signal.advantages, [1.0; 5], "the mean of its group is a half");
    let values = timelines.from_terms(&terms, &[0.5; 5]).unwrap();
    assert_eq!(values, [vec![0.5; 5], Vec::new()]);
    let empty = gae(&GaeConfig::new(), &values[1], 0.0, &timelines.rollouts[1].bounds).unwrap();
    assert_eq!(timelines.to_terms(&terms, &[vec![1.0; 5], empty.advantages]), Ok(vec![1.0; 5]));
}

#[test]
fn terms_of_two_trees_in_one_batch_are_told_apart_by_nothing_and_refused() {
    let tree = read(GROUP);
    let layouts = Layouts::new(&tree).unwrap();
    let timelines = Timelines::of(&layouts);
    let sequences = layouts.packed().unwrap().sequences;
    let twice = Batch::new([&sequences[0], &sequences[0]], &device()).unwrap();
    let rollouts =
        group_advantages(&AdvantageConfig::new(), &timelines.outcomes(&layouts).unwrap()).unwrap();
    let expected = TrainError::Objective(ObjectiveError::Duplicate { generation: 0, offset: 0 });
    assert_eq!(timelines.broadcast(twice.terms(), &rollouts).unwrap_err(), expected);
    assert_eq!(timelines.from_terms(twice.terms(), &[0.0; 14]).unwrap_err(), expected);
    assert_eq!(
        timelines.to_terms(twice.terms(), &[vec![0.0; 5], vec![0.0; 2]]).unwrap_err(),
        expected
    );
    let eras = layouts.eras();
    assert_eq!(
        pleach_train::diagnostics::clip_fractions(twice.terms(), &[0.0; 14], &eras).unwrap_err(),
        expected
    );
}

#[test]
fn what_does_not_fit_a_tree_is_refused() {
    let tree = read(GROUP);
    let layouts = Layouts::new(&tree).unwrap();
    let timelines = Timelines::of(&layouts);
    let packed = layouts.packed().unwrap().sequences;
    let batch = Batch::new(&packed, &device()).unwrap();
    assert!(timelines.broadcast(batch.terms(), &[]).is_err());
    assert!(timelines.to_terms(batch.terms(), &[vec![0.0; 5]]).is_err());
    assert!(timelines.from_terms(batch.terms(), &[0.0]).is_err());
    let unrewarded =
        read(&GROUP.lines().take(13).fold(String::new(), |text, line| text + line + "\n"));
    let layouts = Layouts::new(&unrewarded).unwrap();
    let found = Timelines::of(&layouts).outcomes(&layouts).unwrap_err();
    assert_eq!(
        found,
        pleach_train::TrainError::Objective(pleach_train::ObjectiveError::NoOutcome {
            rollout: "b".to_owned()
        })
    );
}
