//! Contract: SDCC is exactly the task loss where lambda is 0 or no term diverges; its gradient
//! reaches the student alone and is q - p at the student's logits; its weight is a ramp; it works
//! where only requests are known.

use crate::fixtures::{
    near::{FEW, FORMULA, assert_all_near, assert_near},
    table::{Table, VOCABULARY, assert_gradient, device, gradient, numbers, rows_logp, scalar},
    trees::{GROUP, read},
};
use burn::{module::Module, tensor::Tensor};
use pleach_layout::{Layouts, TermId};
use pleach_train::{
    Batch, BatchTerms, CausalModel, ObjectiveError, TrainError,
    objective::{
        DivergenceConfig, NllConfig, PolicyGradientConfig, PolicySignal, Reduction, SdccBatch,
        SdccConfig, Support, Teacher,
    },
};
use pleach_tree::{BranchTree, Fidelity, Header, ReadOptions, Request, records_of_requests};
use std::sync::{Arc, Mutex};

fn batch(tree: &BranchTree) -> SdccBatch {
    SdccBatch::new(&Layouts::new(tree).unwrap(), &device()).unwrap()
}

/// The whole objective, from rows of log-probabilities.
fn naive(student: &Table, teacher: &Table, batch: &SdccBatch, lambda: f64) -> f64 {
    let (q, p) = (rows_logp(student, &batch.student), rows_logp(teacher, &batch.teacher));
    let terms = batch.student.terms();
    let task: f64 =
        (0..terms.len()).map(|at| -q[terms.sources[at] as usize][terms.targets[at] as usize]).sum();
    let kl = |(&student, &teacher): (&i64, &i64)| -> f64 {
        let (q, p) = (&q[student as usize], &p[teacher as usize]);
        (0..VOCABULARY).map(|token| p[token].exp() * (p[token] - q[token])).sum()
    };
    task + lambda * batch.pairs.students.iter().zip(&batch.pairs.teachers).map(kl).sum::<f64>()
}

#[test]
fn the_ramp_is_a_line_from_0_over_the_first_fifth_and_then_stays() {
    let sdcc = SdccConfig::new().init();
    let found: Vec<f64> =
        [0, 1, 10, 19, 20, 21, 99].map(|step| sdcc.lambda(step, 100).unwrap()).to_vec();
    assert_all_near(&found, &[0.0, 0.005, 0.05, 0.095, 0.1, 0.1, 0.1], FEW, "lambda");
    assert_eq!(SdccConfig::new().with_ramp(0.0).init().lambda(0, 100), Ok(0.1));
    assert_eq!(sdcc.lambda(0, 0), Ok(0.1));
    assert!(matches!(
        SdccConfig::new().with_lambda(-1.0).init().lambda(0, 1),
        Err(TrainError::Objective(ObjectiveError::Setting { .. }))
    ));
    assert!(matches!(
        SdccConfig::new().with_ramp(1.5).init().lambda(0, 1),
        Err(TrainError::Objective(ObjectiveError::Setting { .. }))
    ));
}

#[test]
fn value_and_gradient_are_those_of_the_formula() {
    let tree = read(GROUP);
    let batch = batch(&tree);
    assert_eq!(batch.pairs.ids, [0, 1, 2].map(|offset| TermId::new(0, offset)));
    let (student, frozen) = (Table::seeded(1), Table::seeded(2));
    for chunk in [1, 2, 100] {
        let sdcc = SdccConfig::new().with_chunk(chunk).init();
        for (teacher, model) in
            [(Teacher::Live, &student), (Teacher::Frozen(frozen.clone()), &frozen)]
        {
            let found = sdcc.forward(&student, &teacher, &batch, 0.3).unwrap();
            let expected = naive(&student, model, &batch, 0.3);
            assert_near(scalar(&found.loss), expected, FORMULA, format_args!("chunk {chunk}"));
        }
        let teacher = Teacher::Frozen(frozen.clone());
        assert_gradient("sdcc", &student, |table| {
            sdcc.forward(table, &teacher, &batch, 0.3).unwrap().loss
        });
    }
}

#[test]
fn the_live_teacher_gets_no_gradient() {
    let tree = read(GROUP);
    let batch = batch(&tree);
    let student = Table::seeded(3);
    let sdcc = SdccConfig::new().init();
    let of =
        |teacher| gradient(&student, &sdcc.forward(&student, &teacher, &batch, 1.0).unwrap().loss);
    assert_eq!(of(Teacher::Live), of(Teacher::Frozen(Table::of(&student.values()))));
    let frozen = Table::seeded(4);
    let output = sdcc.forward(&student, &Teacher::Frozen(frozen.clone()), &batch, 1.0).unwrap();
    assert!(gradient(&frozen, &output.loss).iter().all(|&value| value == 0.0));
}

#[test]
fn with_lambda_0_and_without_diverging_terms_it_is_the_task_loss_to_the_bit() {
    let tree = read(GROUP);
    let batch = batch(&tree);
    let student = Table::seeded(5);
    let sdcc = SdccConfig::new().with_reduction(Reduction::WeightedMean).init();
    let nll = NllConfig::new().with_reduction(Reduction::WeightedMean).init();
    let without =
        read(&GROUP.replace("[1,2]}]}", "[1,2]}],\"replacement\":{\"kind\":\"placeholder\",\"segments\":[9]}}").replace(
            "{\"t\":\"evict\"",
            "{\"t\":\"segment\",\"id\":9,\"role\":\"user\",\"origin\":\"harness\",\"tokens\":[6]}\n{\"t\":\"evict\"",
        ));
    let same = self::batch(&without);
    assert!(same.pairs.is_empty());
    for (batch, lambda) in [(&batch, 0.0), (&same, 0.7)] {
        let found = sdcc.forward(&student, &Teacher::Live, batch, lambda).unwrap();
        let expected = nll.forward(&student, &batch.student).unwrap();
        assert!(found.residual.is_none());
        assert_eq!(scalar(&found.loss).to_bits(), scalar(&expected.loss).to_bits());
        assert_eq!(gradient(&student, &found.loss), gradient(&student, &expected.loss));
    }
}

#[test]
fn task_and_residual_are_divided_by_the_same_number() {
    let tree = read(GROUP);
    let batch = batch(&tree);
    let student = Table::seeded(6);
    let of = |reduction| {
        let sdcc = SdccConfig::new().with_reduction(reduction).init();
        scalar(&sdcc.forward(&student, &Teacher::Live, &batch, 0.5).unwrap().loss)
    };
    let terms = batch.student.terms().len() as f64;
    assert_near(of(Reduction::WeightedMean), of(Reduction::Sum) / terms, FORMULA, "mean");
}

/// A table that remembers whether each of its passes kept a graph.
#[derive(Module, Debug)]
struct Watched {
    table: Table,
    #[module(skip)]
    passes: Arc<Mutex<Vec<bool>>>,
}

impl CausalModel for Watched {
    fn hidden(&self, batch: &Batch) -> Result<Tensor<3>, TrainError> {
        let hidden = self.table.hidden(batch)?;
        self.passes.lock().unwrap().push(hidden.is_tracked());
        Ok(hidden)
    }

    fn vocabulary(&self) -> usize {
        self.table.vocabulary()
    }

    fn logits(&self, hidden_nd: Tensor<2>) -> Tensor<2> {
        self.table.logits(hidden_nd)
    }
}

#[test]
fn the_teacher_reads_all_live_views_in_one_pass_that_keeps_no_graph() {
    let tree = read(GROUP);
    let student = Watched { table: Table::seeded(11), passes: Arc::default() };
    SdccConfig::new().init().forward(&student, &Teacher::Live, &batch(&tree), 0.1).unwrap();
    assert_eq!(*student.passes.lock().unwrap(), [true, false]);
}

#[test]
fn where_only_requests_are_known_the_request_before_a_junction_is_the_teachers_prefix() {
    let request = |prompt: &[u32], output: &[u32]| Request {
        prompt: prompt.to_vec(),
        output: output.to_vec(),
        logprobs: None,
    };
    for prompt in [&[5, 0, 2, 3][..], &[5, 0, 2, 3, 6], &[5, 0, 2, 3, 6, 0]] {
        let requests = [request(&[5, 6, 1], &[2, 3]), request(prompt, &[4])];
        let records =
            records_of_requests(Header::new("requests", Fidelity::Inferred), "r0", &requests)
                .unwrap();
        let (tree, _) = BranchTree::from_records(records, "requests", ReadOptions::STRICT).unwrap();
        let batch = batch(&tree);
        assert_eq!(batch.pairs.ids, [0, 1].map(|offset| TermId::new(0, offset)), "{prompt:?}");
        let tokens = batch.teacher.tokens_bt().into_data().iter::<i64>().collect::<Vec<_>>();
        for (&teacher, before) in batch.pairs.teachers.iter().zip([&[5, 6, 1][..], &[5, 6, 1, 2]]) {
            assert_eq!(&tokens[..=teacher as usize], before);
        }
        let student = Table::seeded(9);
        let found =
            SdccConfig::new().init().forward(&student, &Teacher::Live, &batch, 0.1).unwrap();
        assert_near(
            scalar(&found.loss),
            naive(&student, &student, &batch, 0.1),
            FORMULA,
            format_args!("{prompt:?}"),
        );
    }
}

/// The records of [`GROUP`] with every weight 0, and with nothing of the policy.
fn silent() -> [BranchTree; 2] {
    let weightless = [("[2,3,4]", 3), ("[3,5]", 2), ("[2,6]", 2)].iter().fold(
        GROUP.to_owned(),
        |text, (tokens, end)| {
            let loss = format!("\"tokens\":{tokens},\"loss\":[[0,{end},0.0]],\"logprobs\"");
            text.replace(&format!("\"tokens\":{tokens},\"logprobs\""), &loss)
        },
    );
    let foreign = GROUP.replace("\"origin\":\"policy\"", "\"origin\":\"external_model\"");
    [read(&weightless), read(&foreign)]
}

#[test]
fn where_nothing_is_supervised_the_loss_and_its_gradient_are_0() {
    let student = Table::seeded(12);
    let [weightless, foreign] = silent();
    assert_eq!(batch(&weightless).student.terms().weights, [0.0; 7]);
    assert!(batch(&foreign).student.terms().is_empty());
    for tree in [weightless, foreign] {
        for reduction in [Reduction::Sum, Reduction::WeightedMean] {
            let sdcc = SdccConfig::new().with_reduction(reduction).init();
            let loss = sdcc.forward(&student, &Teacher::Live, &batch(&tree), 0.1).unwrap().loss;
            assert_eq!(scalar(&loss), 0.0, "{reduction:?}");
            assert!(gradient(&student, &loss).iter().all(|&value| value == 0.0), "{reduction:?}");
        }
    }
}

#[test]
fn a_weight_that_is_no_weight_is_refused_before_anything_runs() {
    let tree = read(GROUP);
    let student = Watched { table: Table::seeded(15), passes: Arc::default() };
    for lambda in [f64::NAN, f64::INFINITY, -0.1] {
        let refused = SdccConfig::new()
            .init()
            .forward(&student, &Teacher::Live, &batch(&tree), lambda)
            .map(|_| ())
            .unwrap_err();
        assert!(
            matches!(refused, TrainError::Objective(ObjectiveError::Setting { .. })),
            "{lambda}: {refused}"
        );
    }
    assert!(student.passes.lock().unwrap().is_empty());
}

#[test]
fn cheaper_supports_are_taken_by_configuration() {
    let tree = read(GROUP);
    let batch = batch(&tree);
    let student = Table::seeded(10);
    let of = |support| {
        let divergence = DivergenceConfig::new().with_support(support);
        let sdcc = SdccConfig::new().with_divergence(divergence).init();
        sdcc.forward(&student, &Teacher::Live, &batch, 0.1).unwrap().residual.unwrap()
    };
    let whole = numbers(&of(Support::Vocabulary).divergence_n);
    let top = numbers(&of(Support::TopK(2)).divergence_n);
    assert!(whole.iter().zip(&top).all(|(whole, top)| top <= whole), "{top:?} {whole:?}");
    assert!(of(Support::SampledToken).total_variation_n.is_none());
}

#[test]
fn trees_without_a_token_and_under_kv_evict_are_refused() {
    let header =
        "{\"t\":\"header\",\"version\":1,\"harness\":\"example\",\"fidelity\":\"token\"}\n";
    let empty = read(header);
    let refused = SdccBatch::new(&Layouts::new(&empty).unwrap(), &device()).unwrap_err();
    assert_eq!(refused, TrainError::EmptyRow { row: 0 });
    let kept = read(
        &GROUP
            .lines()
            .filter(|line| {
                !line.contains("\"b\"") && !line.contains("fork") && !line.contains("\"id\":3")
            })
            .fold(String::new(), |text, line| {
                text + &line.replace(
                    "\"fidelity\":\"token\"",
                    "\"fidelity\":\"token\",\"cache\":\"kv_evict\"",
                ) + "\n"
            }),
    );
    let refused = SdccBatch::new(&Layouts::new(&kept).unwrap(), &device()).unwrap_err();
    assert!(matches!(refused, TrainError::Layout(_)), "{refused}");
}

/// The batch of a tree with the weights that `of` gives each term.
fn weighted(batch: &SdccBatch, of: impl Fn(usize, f64) -> f64) -> BatchTerms {
    let mut terms = batch.student.terms().clone();
    for (at, weight) in terms.weights.iter_mut().enumerate() {
        *weight = of(at, *weight);
    }
    terms
}

fn signal(terms: &BatchTerms) -> PolicySignal {
    let advantages = (0..terms.len()).map(|at| 0.3 * at as f64 - 0.5).collect();
    PolicySignal::new(advantages, vec![-1.0; terms.len()])
}

#[test]
fn with_a_policy_gradient_both_parts_have_the_weights_of_the_terms_and_one_normaliser() {
    let tree = read(GROUP);
    let batch = batch(&tree);
    let (student, frozen) = (Table::seeded(11), Table::seeded(12));
    let teacher = Teacher::Frozen(frozen.clone());
    let policy = PolicyGradientConfig::new().init();
    let terms = weighted(&batch, |at, _| [1.0, 0.5, 2.0][at % 3]);
    let sdcc = SdccConfig::new().with_reduction(Reduction::WeightedMean).init();
    let found = sdcc
        .forward_policy(&student, &teacher, &batch, (&policy, &terms, &signal(&terms)), 0.3)
        .unwrap();

    let total: f64 = terms.weights.iter().sum();
    let sums = PolicyGradientConfig::new().with_reduction(Reduction::Sum).init();
    let hidden_btc = student.hidden(&batch.student).unwrap();
    let surrogate = sums.forward_hidden(&student, hidden_btc, &terms, &signal(&terms)).unwrap();
    let (q, p) = (rows_logp(&student, &batch.student), rows_logp(&frozen, &batch.teacher));
    let kl: f64 = (0..batch.pairs.len())
        .map(|pair| {
            let id = batch.pairs.ids[pair];
            let at = terms.ids.iter().position(|other| *other == id).unwrap();
            let q = &q[batch.pairs.students[pair] as usize];
            let p = &p[batch.pairs.teachers[pair] as usize];
            let kl: f64 = (0..VOCABULARY).map(|token| p[token].exp() * (p[token] - q[token])).sum();
            terms.weights[at] * kl
        })
        .sum();
    let expected = (scalar(&surrogate.loss) + 0.3 * kl) / total;
    assert_near(scalar(&found.loss), expected, FORMULA, "one normaliser");
    assert_gradient("sdcc with a policy gradient", &student, |table| {
        let parts = (&policy, &terms, &signal(&terms));
        sdcc.forward_policy(table, &teacher, &batch, parts, 0.3).unwrap().loss
    });

    // A tenth of every weight is the same mean, and a tenth of the sum.
    let tenth = weighted(&batch, |at, _| 0.1 * [1.0, 0.5, 2.0][at % 3]);
    let mean = sdcc
        .forward_policy(&student, &teacher, &batch, (&policy, &tenth, &signal(&tenth)), 0.3)
        .unwrap();
    assert_near(scalar(&mean.loss), expected, FORMULA, "a tenth of the weights");
    let sum = SdccConfig::new().init();
    let sum = sum
        .forward_policy(&student, &teacher, &batch, (&policy, &tenth, &signal(&tenth)), 0.3)
        .unwrap();
    assert_near(scalar(&sum.loss), 0.1 * total * expected, FORMULA, "the sum");
}

#[test]
fn a_masked_rollout_is_neither_rewarded_nor_pulled_and_parts_add_up_to_the_whole() {
    let tree = read(GROUP);
    let batch = batch(&tree);
    let student = Table::seeded(13);
    let teacher = Teacher::Frozen(Table::seeded(14));
    let policy = PolicyGradientConfig::new().init();
    let sdcc = SdccConfig::new().with_reduction(Reduction::WeightedMean).init();
    let masked = weighted(&batch, |_, _| 0.0);
    let found = sdcc
        .forward_policy(&student, &teacher, &batch, (&policy, &masked, &signal(&masked)), 0.3)
        .unwrap();
    assert_eq!(scalar(&found.loss), 0.0);
    assert!(gradient(&student, &found.loss).iter().all(|&value| value == 0.0));

    let whole = weighted(&batch, |at, _| 1.0 + at as f64);
    let total: f64 = whole.weights.iter().sum();
    let loss = |terms: &BatchTerms, reduction| {
        let sdcc = SdccConfig::new().with_reduction(reduction).init();
        let parts = (&policy, terms, &signal(terms));
        scalar(&sdcc.forward_policy(&student, &teacher, &batch, parts, 0.3).unwrap().loss)
    };
    let [even, odd] = [0, 1]
        .map(|part| weighted(&batch, |at, _| if at % 2 == part { 1.0 + at as f64 } else { 0.0 }));
    let parts: f64 = [&even, &odd].map(|terms| loss(terms, Reduction::Over(total))).iter().sum();
    assert_near(parts, loss(&whole, Reduction::WeightedMean), FORMULA, "parts");
}
