//! Contract: the teacher of a search query is the same output behind the agent's context and a
//! block of its group's queries and outcomes, a branch of the same tree without loss; the objective
//! is the policy gradient plus a divergence at query tokens and nowhere else.

use crate::fixtures::{
    near::{DIFFERENCE, FORMULA, assert_near, slope},
    table::{Table, assert_gradient, device, gradient, rows_logp, scalar},
    trees::{GROUP, read},
};
use pleach_layout::Layouts;
use pleach_train::{
    Batch, ObjectiveError, TrainError,
    advantage::{AdvantageConfig, Timelines, group_advantages, recorded_log_probabilities},
    objective::{
        Hindsight, HindsightTemplate, Pairs, PolicyGradientConfig, PolicySignal, Query,
        SdSearchConfig, hindsight,
    },
};
use pleach_tree::{BranchTree, GenerationId, ReadOptions};

fn template() -> HindsightTemplate {
    HindsightTemplate {
        open: vec![0],
        query: vec![1],
        success: vec![5],
        failure: vec![6],
        close: vec![0],
        threshold: 0.5,
    }
}

fn query(generation: u32, start: u32, end: u32) -> Query {
    Query { generation: GenerationId(generation), start, end }
}

fn with_hindsight() -> (Hindsight, BranchTree) {
    let made = hindsight(&read(GROUP), &[query(0, 1, 3), query(2, 0, 2)], &template()).unwrap();
    let (tree, _) =
        BranchTree::from_records(made.records.clone(), "hindsight", ReadOptions::STRICT).unwrap();
    (made, tree)
}

#[test]
fn a_teacher_sees_the_agents_context_and_then_its_groups_queries_and_outcomes() {
    let (made, tree) = with_hindsight();
    let block = [0, 1, 3, 4, 5, 1, 2, 6, 6, 0];
    let view = |generation| tree.view(GenerationId(generation)).unwrap().tokens();
    assert_eq!(view(3), [&[5, 6, 1][..], &block, &[2, 3, 4]].concat());
    assert_eq!(view(4), [&[5, 6, 1][..], &block, &[2, 6]].concat());
    let aligned: Vec<_> = made
        .aligned
        .iter()
        .map(|pair| [pair.student, pair.teacher].map(|id| (id.generation, id.offset)))
        .collect();
    assert_eq!(aligned, [[(0, 1), (3, 1)], [(0, 2), (3, 2)], [(2, 0), (4, 0)], [(2, 1), (4, 1)]]);
}

#[test]
fn a_teacher_shares_its_trunk_and_has_no_loss() {
    let (_, tree) = with_hindsight();
    let (before, after) = (read(GROUP), tree);
    let packed =
        |tree: &BranchTree| Layouts::new(tree).unwrap().packed().unwrap().sequences.remove(0);
    let (before, after) = (packed(&before), packed(&after));
    assert_eq!(
        after.len() - before.len(),
        10 + 4,
        "one block, and the outputs but for the token that they share"
    );
    let trained =
        |terms: &[pleach_layout::Term]| terms.iter().filter(|term| term.weight != 0.0).count();
    assert_eq!(trained(&after.terms), trained(&before.terms));
    assert_eq!(after.terms.len() - before.terms.len(), 5);
}

struct Prepared {
    batch: Batch,
    signal: PolicySignal,
    pairs: Pairs,
}

fn prepared() -> Prepared {
    let (made, tree) = with_hindsight();
    let layouts = Layouts::new(&tree).unwrap();
    let packed = layouts.packed().unwrap().sequences;
    let batch = Batch::new(&packed, &device()).unwrap();
    let pairs = Pairs::new(batch.terms(), batch.terms(), made.aligned).unwrap();
    let advantages = (0..batch.terms().len()).map(|at| 0.5 - at as f64).collect();
    let signal = PolicySignal::new(advantages, recorded_log_probabilities(&layouts, batch.terms()));
    Prepared { batch, signal, pairs }
}

/// Mean Jensen-Shannon divergence at the queries of a student from a teacher.
fn naive(student: &Table, teacher: &Table, prepared: &Prepared) -> f64 {
    let (q, p) = (rows_logp(student, &prepared.batch), rows_logp(teacher, &prepared.batch));
    let pairs = prepared.pairs.students.iter().zip(&prepared.pairs.teachers);
    let divergence = |(&s, &t): (&i64, &i64)| -> f64 {
        let term = |(q, p): (&f64, &f64)| {
            let (q, p) = (q.exp(), p.exp());
            let m = 0.5 * (q + p);
            0.5 * p * (p / m).ln() + 0.5 * q * (q / m).ln()
        };
        q[s as usize].iter().zip(&p[t as usize]).map(term).sum()
    };
    pairs.map(divergence).sum::<f64>() / prepared.pairs.len() as f64
}

#[test]
fn the_objective_is_the_policy_gradient_plus_the_weighted_divergence_at_queries() {
    let (prepared, table) = (prepared(), Table::seeded(1));
    let output = SdSearchConfig::new(0.7)
        .init()
        .forward(&table, &prepared.batch, &prepared.signal, &prepared.pairs)
        .unwrap();
    let policy = PolicyGradientConfig::new()
        .init()
        .forward(&table, &prepared.batch, &prepared.signal)
        .unwrap();
    let expected = scalar(&policy.loss) + 0.7 * naive(&table, &table, &prepared);
    assert_near(scalar(&output.loss), expected, FORMULA, "the sum of both");
    let fixed = Table::of(&table.values());
    let both = |student: &Table| {
        let output = SdSearchConfig::new(0.7).init().forward(
            student,
            &prepared.batch,
            &prepared.signal,
            &prepared.pairs,
        );
        output.unwrap()
    };
    let found = gradient(&table, &both(&table).queries.loss);
    for (at, found) in found.iter().enumerate() {
        let moved = |step: f64| {
            let mut values = table.values();
            values[at] += step;
            naive(&Table::of(&values), &fixed, &prepared)
        };
        assert_near(
            *found,
            slope(moved),
            DIFFERENCE,
            format_args!("number {at}: the teacher's side has no gradient"),
        );
    }
    let policy = |table: &Table| {
        PolicyGradientConfig::new()
            .init()
            .forward(table, &prepared.batch, &prepared.signal)
            .unwrap()
            .loss
    };
    assert_gradient("policy gradient", &table, policy);
}

#[test]
fn the_gradient_of_the_whole_is_that_of_differences_with_the_teacher_held() {
    let (prepared, table) = (prepared(), Table::seeded(3));
    let fixed = Table::of(&table.values());
    let policy = PolicyGradientConfig::new().init();
    let whole = |values: &[f64]| {
        let student = Table::of(values);
        let policy = policy.forward(&student, &prepared.batch, &prepared.signal).unwrap().loss;
        scalar(&policy) + 0.7 * naive(&student, &fixed, &prepared)
    };
    let output = SdSearchConfig::new(0.7)
        .init()
        .forward(&table, &prepared.batch, &prepared.signal, &prepared.pairs)
        .unwrap();
    assert_near(scalar(&output.loss), whole(&table.values()), FORMULA, "loss");
    let found = gradient(&table, &output.loss);
    assert!(found.iter().any(|value| value.abs() > 1e-3));
    for (at, found) in found.iter().enumerate() {
        let moved = |step: f64| {
            let mut values = table.values();
            values[at] += step;
            whole(&values)
        };
        assert_near(*found, slope(moved), DIFFERENCE, format_args!("number {at}"));
    }
}

#[test]
fn rewards_reach_the_agents_tokens_of_a_tree_with_teachers_as_they_do_without() {
    let (made, tree) = with_hindsight();
    let plain = read(GROUP);
    let (layouts, before) = (Layouts::new(&tree).unwrap(), Layouts::new(&plain).unwrap());
    let (timelines, expected) = (Timelines::of(&layouts), Timelines::of(&before));
    assert_eq!(timelines.rollouts, expected.rollouts, "teachers add no optimised token");
    let outcomes = timelines.outcomes(&layouts).unwrap();
    assert_eq!(outcomes, expected.outcomes(&before).unwrap());
    let rollouts = group_advantages(&AdvantageConfig::new(), &outcomes).unwrap();
    let packed = layouts.packed().unwrap().sequences;
    let batch = Batch::new(&packed, &device()).unwrap();
    let (advantages, terms) = timelines.broadcast(batch.terms(), &rollouts).unwrap();
    assert_eq!(&terms, batch.terms(), "both rollouts are trained");
    assert_eq!(advantages[..7], [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0]);
    assert_eq!(terms.weights, [[1.0; 7].as_slice(), &[0.0; 5]].concat());
    let signal = PolicySignal::new(advantages, recorded_log_probabilities(&layouts, &terms));
    let pairs = Pairs::new(&terms, &terms, made.aligned).unwrap();
    let table = Table::seeded(4);
    let output = SdSearchConfig::new(0.7).init().forward(&table, &batch, &signal, &pairs).unwrap();

    let packed = before.packed().unwrap().sequences;
    let alone = Batch::new(&packed, &device()).unwrap();
    let (advantages, terms) = expected.broadcast(alone.terms(), &rollouts).unwrap();
    let signal = PolicySignal::new(advantages, recorded_log_probabilities(&before, &terms));
    let policy = PolicyGradientConfig::new().init().forward(&table, &alone, &signal).unwrap();
    assert_near(scalar(&output.policy.loss), scalar(&policy.loss), FORMULA, "loss of the policy");
    assert!(scalar(&output.queries.loss) > 0.0);
    assert!(gradient(&table, &output.loss).iter().all(|value| value.is_finite()));
}

#[test]
fn a_batch_that_is_masked_whole_has_a_loss_and_a_gradient_of_0() {
    let silent = GROUP
        .replace("],\"logprobs\"", "],\"loss\":[[0,2,0.0]],\"logprobs\"")
        .replace("[[0,2,0.0]],\"logprobs\":[-1.5", "[[0,3,0.0]],\"logprobs\":[-1.5");
    let made = hindsight(&read(&silent), &[query(0, 1, 3), query(2, 0, 2)], &template()).unwrap();
    let (tree, _) =
        BranchTree::from_records(made.records, "hindsight", ReadOptions::STRICT).unwrap();
    let layouts = Layouts::new(&tree).unwrap();
    let packed = layouts.packed().unwrap().sequences;
    let batch = Batch::new(&packed, &device()).unwrap();
    assert_eq!(batch.terms().weights, [0.0; 12]);
    let pairs = Pairs::new(batch.terms(), batch.terms(), made.aligned).unwrap();
    let signal = PolicySignal::new(vec![1.0; 12], vec![f64::NAN; 12]);
    let table = Table::seeded(5);
    let output = SdSearchConfig::new(0.7).init().forward(&table, &batch, &signal, &pairs).unwrap();
    assert_eq!(scalar(&output.loss), 0.0);
    assert!(gradient(&table, &output.loss).iter().all(|&value| value == 0.0));
}

#[test]
fn without_queries_it_is_the_policy_gradient() {
    let (prepared, table) = (prepared(), Table::seeded(2));
    let output = SdSearchConfig::new(0.7)
        .init()
        .forward(&table, &prepared.batch, &prepared.signal, &Pairs::default())
        .unwrap();
    assert_eq!(scalar(&output.loss), scalar(&output.policy.loss));
    let found = SdSearchConfig::new(-1.0).init().forward(
        &table,
        &prepared.batch,
        &prepared.signal,
        &prepared.pairs,
    );
    assert!(matches!(found.unwrap_err(), TrainError::Objective(ObjectiveError::Setting { .. })));
}

#[test]
fn queries_outside_an_output_and_rollouts_without_an_outcome_are_refused() {
    let tree = read(GROUP);
    let found = hindsight(&tree, &[query(0, 1, 4)], &template()).unwrap_err();
    assert_eq!(
        found,
        TrainError::Objective(ObjectiveError::Query {
            generation: 0,
            start: 1,
            end: 4,
            sampled: 3
        })
    );
    assert!(matches!(
        hindsight(&tree, &[query(9, 0, 0)], &template()).unwrap_err(),
        TrainError::Objective(ObjectiveError::Query { sampled: 0, .. })
    ));
    let unrewarded =
        read(&GROUP.lines().take(13).fold(String::new(), |text, line| text + line + "\n"));
    let found = hindsight(&unrewarded, &[query(2, 0, 1)], &template()).unwrap_err();
    assert_eq!(found, TrainError::Objective(ObjectiveError::NoOutcome { rollout: "b".to_owned() }));
    let none = hindsight(&tree, &[], &template()).unwrap();
    assert_eq!(none.records, tree.records());
    for queries in [[query(0, 0, 2), query(0, 1, 3)], [query(0, 1, 3), query(0, 0, 2)]] {
        let found = hindsight(&tree, &queries, &template()).unwrap_err();
        let expected = ObjectiveError::OverlappingQueries { generation: 0, start: 1, end: 3 };
        assert_eq!(found, TrainError::Objective(expected));
    }
    assert!(
        hindsight(&tree, &[query(0, 2, 3), query(0, 0, 2)], &template()).is_ok(),
        "neighbours share nothing"
    );
}

#[test]
fn records_whose_ids_are_used_up_are_refused_and_those_with_teachers_take_more() {
    let largest = |text: &str| GROUP.replace(text, &text.replace('3', &u32::MAX.to_string()));
    let segment = largest("\"id\":3,\"role\"")
        .replace("\"output\":[3]", &format!("\"output\":[{}]", u32::MAX));
    for records in [segment, largest("\"context\":3,")] {
        let found = hindsight(&read(&records), &[query(0, 1, 3)], &template()).unwrap_err();
        assert!(
            matches!(&found, TrainError::Records { message } if message.contains("used up")),
            "{found}"
        );
    }
    let (_, tree) = with_hindsight();
    let twice = hindsight(&tree, &[query(0, 1, 3)], &template()).unwrap();
    let (tree, _) =
        BranchTree::from_records(twice.records, "hindsight", ReadOptions::STRICT).unwrap();
    let threads: std::collections::HashSet<_> =
        tree.generations().map(|one| (&one.rollout, &one.thread)).collect();
    assert_eq!(
        (tree.generation_count(), threads.len()),
        (6, 5),
        "every teacher has a thread of its own"
    );
}
