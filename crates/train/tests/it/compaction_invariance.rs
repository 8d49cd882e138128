//! Contract: a rollout that is cut into more contexts and segments, with nothing else sampled or
//! seen, has the same advantages, losses and gradients, bit for bit, under every objective.

use crate::fixtures::{
    table::{Table, WIDTH, critic, device, gradient, noise, numbers, scalar},
    trees::{GROUP, GROUP_CUT, LONGER, longer_cut, read},
};
use burn::tensor::Tensor;
use pleach_layout::{LayoutKind, Layouts};
use pleach_train::{
    Batch, BatchTerms, CausalModel,
    advantage::{
        AdvantageConfig, GaeConfig, GaeOutput, Timelines, gae, group_advantages,
        recorded_log_probabilities,
    },
    equivalence::collect_gradients,
    objective::{
        DivergenceConfig, DivergenceKind, HindsightTemplate, NllConfig, Pairs,
        PolicyGradientConfig, PolicySignal, Query, Reduction, SdSearchConfig, SdccBatch,
        SdccConfig, Teacher, ValueHeadConfig, hindsight,
    },
};
use pleach_tree::{BranchTree, GenerationId, ReadOptions};

/// What is computed of a tree, by name, as bits.
#[derive(Default)]
struct Found(Vec<(String, Vec<u64>)>);

impl Found {
    fn keep(&mut self, name: impl Into<String>, values: &[f64]) {
        assert!(values.iter().any(|&value| value != 0.0), "nothing to compare");
        self.0.push((name.into(), values.iter().map(|value| value.to_bits()).collect()));
    }

    /// A loss and its gradient.
    fn loss(&mut self, name: impl Into<String>, model: &Table, loss: &Tensor<1>) {
        let gradient = gradient(model, loss);
        assert!(gradient.iter().any(|&value| value != 0.0), "no gradient");
        self.keep(name, &[vec![scalar(loss)], gradient].concat());
    }
}

fn packed(layouts: &Layouts<'_>) -> Batch {
    let sequences = layouts.packed().unwrap().sequences;
    Batch::new(&sequences, &device()).unwrap()
}

/// The negative log-likelihood of layouts, and SDCC under every divergence.
fn consistency(found: &mut Found, layouts: &Layouts<'_>, kinds: &[LayoutKind]) {
    let model = Table::seeded(1);
    for kind in kinds {
        let sequences = layouts.layout(*kind).unwrap().sequences;
        let batch = Batch::new(&sequences, &device()).unwrap();
        let nll = NllConfig::new().with_reduction(Reduction::WeightedMean).with_chunk(2).init();
        found.loss(kind.name(), &model, &nll.forward(&model, &batch).unwrap().loss);
    }
    let batch = SdccBatch::new(layouts, &device()).unwrap();
    for kind in
        [DivergenceKind::ForwardKl, DivergenceKind::ReverseKl, DivergenceKind::JensenShannon(0.3)]
    {
        let sdcc =
            SdccConfig::new().with_divergence(DivergenceConfig::new().with_kind(kind)).init();
        let output = sdcc.forward(&model, &Teacher::Live, &batch, 0.1).unwrap();
        found.loss(format!("sdcc {kind:?}"), &model, &output.loss);
        found.keep(format!("residual {kind:?}"), &numbers(&output.residual.unwrap().divergence_n));
    }
}

/// Group advantages at the terms of a batch.
fn advantaged(layouts: &Layouts<'_>, batch: &Batch) -> (PolicySignal, BatchTerms) {
    let timelines = Timelines::of(layouts);
    let rollouts =
        group_advantages(&AdvantageConfig::new(), &timelines.outcomes(layouts).unwrap()).unwrap();
    let (advantages, terms) = timelines.broadcast(batch.terms(), &rollouts).unwrap();
    (PolicySignal::new(advantages, recorded_log_probabilities(layouts, &terms)), terms)
}

/// The policy gradient, and SD-Search over the same tree with teachers.
fn policy(found: &mut Found, layouts: &Layouts<'_>) {
    let (model, batch) = (Table::seeded(1), packed(layouts));
    let (signal, terms) = advantaged(layouts, &batch);
    found.keep("advantages", &signal.advantages);
    let hidden = model.hidden(&batch).unwrap();
    let policy =
        PolicyGradientConfig::new().init().forward_hidden(&model, hidden, &terms, &signal).unwrap();
    found.loss("policy gradient", &model, &policy.loss);

    let template = HindsightTemplate {
        open: vec![0],
        query: vec![1],
        success: vec![5],
        failure: vec![6],
        close: vec![0],
        threshold: 0.5,
    };
    let query = |generation, start, end| Query { generation: GenerationId(generation), start, end };
    let made = hindsight(layouts.tree(), &[query(0, 1, 3), query(2, 0, 2)], &template).unwrap();
    let (tree, _) =
        BranchTree::from_records(made.records, "hindsight", ReadOptions::STRICT).unwrap();
    let layouts = Layouts::new(&tree).unwrap();
    let batch = packed(&layouts);
    let (signal, _) = advantaged(&layouts, &batch);
    let pairs = Pairs::new(batch.terms(), batch.terms(), made.aligned).unwrap();
    let output = SdSearchConfig::new(0.7).init().forward(&model, &batch, &signal, &pairs).unwrap();
    found.loss("sd-search", &model, &output.loss);
    found.keep("queries", &numbers(&output.queries.divergence_n));
}

/// Advantages along the timeline and the critic's loss.
fn criticised(found: &mut Found, layouts: &Layouts<'_>) {
    let (model, batch) = (Table::seeded(1), packed(layouts));
    let (timelines, terms) = (Timelines::of(layouts), batch.terms());
    let outcomes = timelines.outcomes(layouts).unwrap();
    let values = noise(2, terms.len());
    let per_rollout = timelines.from_terms(terms, &values).unwrap();
    let rollouts = timelines.rollouts.iter().zip(&per_rollout).zip(&outcomes);
    let estimated: Vec<GaeOutput> = rollouts
        .map(|((timeline, values), outcome)| {
            gae(&GaeConfig::new(), values, outcome.reward, &timeline.bounds).unwrap()
        })
        .collect();
    let per_term = |of: fn(&GaeOutput) -> Vec<f64>| {
        timelines.to_terms(terms, &estimated.iter().map(of).collect::<Vec<_>>()).unwrap()
    };
    found.keep("estimated advantages", &per_term(|output| output.advantages.clone()));
    let returns = per_term(|output| output.returns.clone());
    let critic = critic(&ValueHeadConfig::new(WIDTH), &[0.4, -0.3, 0.8], 0.1);
    let loss =
        critic.forward(model.hidden(&batch).unwrap(), terms, &values, &returns).unwrap().loss;
    let gradients = collect_gradients(&critic, loss.backward()).unwrap().gradients;
    gradients
        .iter()
        .for_each(|(name, gradient)| found.keep(format!("critic {name}"), &gradient.values));
    let model_gradient = collect_gradients(
        &model,
        critic
            .forward(model.hidden(&batch).unwrap(), terms, &values, &returns)
            .unwrap()
            .loss
            .backward(),
    );
    found.keep("critic loss", &[scalar(&loss)]);
    found.keep("critic into the model", &model_gradient.unwrap().gradients["embed"].values);
}

fn everything(records: &str, kinds: &[LayoutKind]) -> Vec<(String, Vec<u64>)> {
    let tree = read(records);
    let layouts = Layouts::new(&tree).unwrap();
    let mut found = Found::default();
    consistency(&mut found, &layouts, kinds);
    policy(&mut found, &layouts);
    criticised(&mut found, &layouts);
    found.0
}

#[test]
fn every_objective_gives_the_same_bits() {
    let (whole, cut) =
        (everything(GROUP, &LayoutKind::ALL), everything(GROUP_CUT, &LayoutKind::ALL));
    assert_eq!(whole.len(), 4 + 6 + 4 + 5);
    for (whole, cut) in whole.iter().zip(&cut) {
        assert_eq!(whole, cut);
    }
}

#[test]
fn every_objective_gives_the_same_bits_where_an_eviction_makes_two_segments_of_one_and_puts_the_same_tokens_back()
 {
    let bounds = |records: &str| {
        let tree = read(records);
        Timelines::of(&Layouts::new(&tree).unwrap()).rollouts[1].bounds.clone()
    };
    assert_eq!((bounds(LONGER), bounds(&longer_cut())), (vec![0, 5], vec![0, 2, 5]));
    // `full` shows what went and what came back, so it is cut with the rollout.
    let kinds: Vec<LayoutKind> =
        LayoutKind::ALL.into_iter().filter(|kind| *kind != LayoutKind::Full).collect();
    for (whole, cut) in everything(LONGER, &kinds).iter().zip(&everything(&longer_cut(), &kinds)) {
        assert_eq!(whole, cut);
    }
}
