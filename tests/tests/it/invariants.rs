//! What must hold for any model on any tree, in float64: nothing outside a row's live view reaches
//! it by a single bit, and packing trees side by side changes nothing. The published union mask is
//! the counter-example: exact at one layer, wrong at two.

use crate::drawn::{GRADIENT, LOGP, config, decoder_on, decoders_on, tree_of};
use burn::tensor::Device;
use pleach_layout::{Layouts, Sequence, Term, pack};
use pleach_tests::{Trees, trees};
use pleach_train::{
    Batch, CausalModel,
    decoder::{Decoder, Family},
    diagnostics::{Union, union_log_probabilities},
    equivalence::Gradient,
    evaluation::{TermLogp, evaluate, log_probabilities},
};
use pleach_tree::{BranchTree, ReadOptions};
use proptest::prelude::*;

fn device() -> Device {
    Device::flex().autodiff()
}

fn decoder(family: Family, layers: usize, seed: u64) -> Decoder {
    decoder_on(&device(), family, layers, seed)
}

fn decoders() -> impl Strategy<Value = Decoder> {
    decoders_on(device())
}

fn packed(tree: &BranchTree) -> Sequence {
    Layouts::new(tree).unwrap().packed().unwrap().sequences.remove(0)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_token_outside_the_live_view_changes_no_bit_of_a_row(
        records in trees(Trees::default()), model in decoders(), row in any::<prop::sample::Index>(), token in any::<prop::sample::Index>(),
    ) {
        let sequence = packed(&tree_of(&records));
        if sequence.is_empty() {
            return Ok(());
        }
        let row = row.index(sequence.len());
        let hidden: Vec<usize> = (0..sequence.len()).filter(|&key| key > row || row >= sequence.ends[key] as usize).collect();
        if hidden.is_empty() {
            return Ok(());
        }
        let mut changed = sequence.clone();
        let key = hidden[token.index(hidden.len())];
        changed.tokens[key] = (changed.tokens[key] + 17) % 64;
        prop_assert_eq!(bits(&model, &sequence, row), bits(&model, &changed, row));
    }

    #[test]
    fn trees_side_by_side_in_a_row_are_the_trees_by_themselves(
        first in trees(Trees::default()), second in trees(Trees::default()), model in decoders(),
    ) {
        let trees = [first, second].map(|records| packed(&tree_of(&records)));
        let budget = trees.iter().map(Sequence::len).sum::<usize>().max(1);
        let rows: Vec<Sequence> = pack(&trees, budget).unwrap().into_iter().map(|row| row.sequence).filter(|row| !row.is_empty()).collect();
        let alone: Vec<Sequence> = trees.iter().filter(|tree| !tree.is_empty()).cloned().collect();
        let of = |sequences: &[Sequence]| {
            let evaluation = evaluate(&model, sequences, &mut |_| {}).unwrap();
            (sorted(&evaluation.logp), evaluation.gradients)
        };
        let ((packed, packed_gradients), (alone, alone_gradients)) = (of(&rows), of(&alone));
        prop_assert_eq!(packed.len(), alone.len());
        for (a, b) in packed.iter().zip(&alone) {
            prop_assert!((a - b).abs() <= LOGP, "{} against {}", a, b);
        }
        let error = pleach_train::equivalence::relative_gradient_error(&alone_gradients, &packed_gradients);
        prop_assert!(error <= GRADIENT, "{}", error);
    }
}

fn sorted(terms: &[TermLogp]) -> Vec<f64> {
    let mut logp: Vec<f64> = terms.iter().map(|term| term.logp).collect();
    logp.sort_by(f64::total_cmp);
    logp
}

/// The bits of a row's hidden state, and of every gradient of a loss on that row alone.
fn bits(model: &Decoder, sequence: &Sequence, row: usize) -> (Vec<u64>, Vec<(String, Vec<u64>)>) {
    let term = Term { source: row as u32, target: 1, generation: 0, offset: 0, weight: 1.0 };
    let only = Sequence { terms: vec![term], ..sequence.clone() };
    let hidden_btc = model.hidden(&Batch::new([&only], &device()).unwrap()).unwrap();
    let hidden = hidden_btc.slice([0..1, row..row + 1]).try_to_vec_as::<f64>().unwrap();
    let gradients = evaluate(model, &[only], &mut |_| {}).unwrap().gradients;
    // A product with 0 is 0 or -0 by the sign of what is not seen, so a zero has no sign here.
    let bits = |values: &[f64]| values.iter().map(|value| (value + 0.0).to_bits()).collect();
    let of = |(name, gradient): (String, Gradient)| (name, bits(&gradient.values));
    (bits(&hidden), gradients.gradients.into_iter().map(of).collect())
}

#[test]
fn the_union_mask_is_exact_at_one_layer_and_wrong_at_two() {
    let (tree, _) =
        BranchTree::read(evicting_three().as_bytes(), "evicting_three", ReadOptions::STRICT)
            .unwrap();
    let layouts = Layouts::new(&tree).unwrap();
    let union = Union::of(&layouts).unwrap().remove(0);
    let gap = |layers| {
        let model = decoder(Family::Llama, layers, 5);
        let exact =
            log_probabilities(&model, &layouts.segments().unwrap().sequences, &mut |_| {}).unwrap();
        let found = union_log_probabilities(&model, &union).unwrap();
        let of = |term: &TermLogp| {
            let same = |other: &&TermLogp| {
                (other.generation, other.offset) == (term.generation, term.offset)
            };
            (exact.iter().find(same).unwrap().logp - term.logp).abs()
        };
        assert_eq!(found.len(), exact.len());
        found.iter().map(of).fold(0.0, f64::max)
    };
    assert!(gap(1) <= LOGP, "{}", gap(1));
    assert!(gap(2) > 1e-3, "{}", gap(2));
}

/// One token a call, and three calls' tokens evicted later with survivors behind each hole.
fn evicting_three() -> String {
    let mut lines =
        vec![r#"{"t":"header","version":1,"harness":"test","fidelity":"token"}"#.to_string()];
    lines.push(r#"{"t":"segment","id":0,"role":"system","origin":"human","tokens":[40]}"#.into());
    lines.push(r#"{"t":"append","context":0,"from":null,"segments":[0]}"#.into());
    let mut context = 0;
    for id in 1..14 {
        let token = 11 * id % 61;
        lines.push(format!(
            r#"{{"t":"segment","id":{id},"role":"assistant","origin":"policy","tokens":[{token}]}}"#
        ));
        lines
            .push(format!(r#"{{"t":"generation","id":{id},"context":{context},"output":[{id}]}}"#));
        lines.push(format!(
            r#"{{"t":"append","context":{},"from":{context},"segments":[{id}]}}"#,
            context + 1
        ));
        context += 1;
        if let Some(evicted) = [(7, 4), (10, 8), (12, 11)]
            .iter()
            .find(|(after, _)| *after == id)
            .map(|(_, segment)| segment)
        {
            let evicted = format!(r#"[{{"segment":{evicted}}}]"#);
            lines.push(format!(
                r#"{{"t":"evict","context":{},"from":{context},"evicted":{evicted}}}"#,
                context + 1
            ));
            context += 1;
        }
    }
    lines.join("\n") + "\n"
}
