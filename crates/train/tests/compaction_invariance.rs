//! Contract: a rollout that is cut into more contexts and segments, with nothing else sampled or seen, has the same advantages, losses
//! and gradients, bit for bit, under every objective.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
mod fixtures;

use fixtures::{
    table::{Table, WIDTH, device, gradient, noise, scalar},
    trees::{GROUP, GROUP_CUT, read},
};
use pleach_layout::{LayoutKind, Layouts};
use pleach_train::{
    AdvantageConfig, Batch, CausalModel, GaeConfig, NllConfig, PolicyGradientConfig, PolicySignal, Precision, Reduction,
    SdccBatch, SdccConfig, Teacher, Timelines, ValueHeadConfig, gae, group_advantages, recorded_log_probabilities,
};

/// Everything that is computed of a tree, as bits.
fn everything(records: &str) -> Vec<(&'static str, Vec<u64>)> {
    let tree = read(records);
    let layouts = Layouts::new(&tree).unwrap();
    let model = Table::seeded(1);
    let mut found = Vec::new();
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let mut keep = |name, loss: &burn::tensor::Tensor<1>| {
        let gradient = gradient(&model, loss);
        assert!(gradient.iter().any(|&value| value != 0.0), "{name} has no gradient");
        found.push((name, bits(&[vec![scalar(loss)], gradient].concat())));
    };
    for kind in LayoutKind::ALL {
        let sequences = layouts.layout(kind).unwrap().sequences;
        let batch = Batch::new(&sequences.iter().collect::<Vec<_>>(), &device()).unwrap();
        let nll = NllConfig::new().with_reduction(Reduction::WeightedMean).with_chunk(2).init();
        keep(kind.name(), &nll.forward(&model, &batch).unwrap().loss);
    }
    let sdcc = SdccConfig::new().init();
    let batch = SdccBatch::new(&layouts, &device()).unwrap();
    keep("sdcc", &sdcc.forward(&model, &Teacher::Live, &batch, 0.1).unwrap().loss);

    let packed = layouts.packed().unwrap().sequences;
    let batch = Batch::new(&packed.iter().collect::<Vec<_>>(), &device()).unwrap();
    let timelines = Timelines::of(&layouts);
    let outcomes = timelines.outcomes(&layouts).unwrap();
    let rollouts = group_advantages(&AdvantageConfig::new(), &outcomes).unwrap();
    let (advantages, terms) = timelines.broadcast(batch.terms(), &rollouts).unwrap();
    let signal = PolicySignal::new(advantages.clone(), recorded_log_probabilities(&layouts, &terms));
    let hidden = model.hidden(&batch).unwrap();
    let policy = PolicyGradientConfig::new().init().forward_hidden(&model, hidden.clone(), &terms, &signal).unwrap();
    keep("policy gradient", &policy.loss);

    let critic = ValueHeadConfig::new(WIDTH).init(Precision::F64, &device());
    let values = noise(2, terms.len());
    let per_rollout = timelines.from_terms(&terms, &values).unwrap();
    let estimated = timelines
        .rollouts
        .iter()
        .zip(&per_rollout)
        .zip(&outcomes)
        .map(|((timeline, values), outcome)| gae(&GaeConfig::new(), values, outcome.reward, &timeline.bounds).unwrap());
    let estimated: Vec<_> = estimated.collect();
    let per_token = |of: fn(&pleach_train::GaeOutput) -> Vec<f64>| estimated.iter().map(of).collect::<Vec<_>>();
    let returns = timelines.to_terms(&terms, &per_token(|output| output.returns.clone())).unwrap();
    let critic_loss = critic.forward(hidden, &terms, &values, &returns).unwrap().loss;
    found.push(("value loss", bits(&[scalar(&critic_loss)])));
    found.push(("advantages", bits(&advantages)));
    let gae_advantages = timelines.to_terms(&terms, &per_token(|output| output.advantages.clone())).unwrap();
    found.push(("estimated advantages", bits(&gae_advantages)));
    found
}

#[test]
fn every_objective_gives_the_same_bits() {
    let (whole, cut) = (everything(GROUP), everything(GROUP_CUT));
    assert_eq!(whole.len(), 9);
    for (whole, cut) in whole.iter().zip(&cut) {
        assert_eq!(whole, cut);
    }
}

#[test]
fn advantages_are_the_groups_and_reach_every_sampled_token() {
    for records in [GROUP, GROUP_CUT] {
        let tree = read(records);
        let layouts = Layouts::new(&tree).unwrap();
        let timelines = Timelines::of(&layouts);
        assert_eq!(timelines.rollouts[0].ids, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]);
        assert_eq!(timelines.rollouts[0].bounds, [0, 3, 5]);
        assert_eq!(timelines.rollouts[1].bounds, [0, 2]);
        let rollouts = group_advantages(&AdvantageConfig::new(), &timelines.outcomes(&layouts).unwrap()).unwrap();
        let packed = layouts.packed().unwrap().sequences;
        let batch = Batch::new(&packed.iter().collect::<Vec<_>>(), &device()).unwrap();
        let (advantages, _) = timelines.broadcast(batch.terms(), &rollouts).unwrap();
        assert_eq!(advantages, [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0]);
        let recorded = recorded_log_probabilities(&layouts, batch.terms());
        assert_eq!(recorded, [-1.5, -2.0, -1.0, -2.5, -0.5, -1.0, -3.0]);
    }
}

#[test]
fn an_overlong_rollout_is_silenced_in_its_terms() {
    let tree = read(&GROUP.replace("\"reward\":0.0,\"status\":\"finished\"", "\"reward\":0.0,\"status\":\"overlong\""));
    let layouts = Layouts::new(&tree).unwrap();
    let timelines = Timelines::of(&layouts);
    let rollouts = group_advantages(&AdvantageConfig::new(), &timelines.outcomes(&layouts).unwrap()).unwrap();
    let packed = layouts.packed().unwrap().sequences;
    let batch = Batch::new(&packed.iter().collect::<Vec<_>>(), &device()).unwrap();
    let (advantages, terms) = timelines.broadcast(batch.terms(), &rollouts).unwrap();
    assert_eq!(advantages[0], 1.0, "it counts in its group's statistics");
    assert_eq!(terms.weights, [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn what_does_not_fit_a_tree_is_refused() {
    let tree = read(GROUP);
    let layouts = Layouts::new(&tree).unwrap();
    let timelines = Timelines::of(&layouts);
    let packed = layouts.packed().unwrap().sequences;
    let batch = Batch::new(&packed.iter().collect::<Vec<_>>(), &device()).unwrap();
    assert!(timelines.broadcast(batch.terms(), &[]).is_err());
    assert!(timelines.to_terms(batch.terms(), &[vec![0.0; 5]]).is_err());
    assert!(timelines.from_terms(batch.terms(), &[0.0]).is_err());
    let unrewarded = read(&GROUP.lines().take(13).fold(String::new(), |text, line| text + line + "\n"));
    let layouts = Layouts::new(&unrewarded).unwrap();
    let found = Timelines::of(&layouts).outcomes(&layouts).unwrap_err();
    assert_eq!(found, pleach_train::TrainError::Objective(pleach_train::ObjectiveError::NoOutcome { rollout: "b".to_owned() }));
}
