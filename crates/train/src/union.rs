use crate::{
    batch::BatchTerms,
    decoder::Decoder,
    error::TrainError,
    evaluation::{Placement, TermLogp, label},
    objective::NllConfig,
};
use burn::module::Module;
use pleach_kernels::UnionMask;
use pleach_layout::Term;

/// One rollout under the published union mask: every token once, a view and positions by row.
///
/// It is for comparison only: it is not exact for models of two or more layers. Published as the
/// packed mask of arXiv 2609.00865.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UnionBatch {
    /// Token ids, each token of the rollout once.
    pub tokens: Vec<u32>,
    /// Per row the tokens that it sees, in the order of its live view and itself last; a key's
    /// position is its index here.
    pub visible: Vec<Vec<u32>>,
    /// Loss terms; sources are rows.
    pub terms: Vec<Term>,
}

/// Log-probabilities of a rollout's loss terms under the union mask.
///
/// # Errors
/// Views that are not valid, terms outside the tokens, and whatever the decoder cannot take.
pub fn union_log_probabilities(
    model: &Decoder,
    union: &UnionBatch,
) -> Result<Vec<TermLogp>, TrainError> {
    let (tokens, found) = (union.tokens.len(), union.visible.len());
    if tokens != found {
        return Err(TrainError::ArrayLength { row: 0, array: "visible", tokens, found });
    }
    let mut terms = BatchTerms::default();
    for term in &union.terms {
        if term.source as usize >= tokens {
            return Err(TrainError::TermSource {
                row: 0,
                generation: term.generation,
                offset: term.offset,
                source_index: term.source,
                tokens,
            });
        }
        terms.sources.push(i64::from(term.source));
        terms.targets.push(term.target);
        terms.weights.push(term.weight);
        terms.ids.push((term.generation, term.offset));
    }
    let model = model.valid();
    let mask = UnionMask::new(&union.visible, &Placement::of(&model)?.device)?;
    let hidden_btc = model.hidden_union(&union.tokens, &mask)?;
    let output = NllConfig::new().init().measure(&model, hidden_btc, &terms)?;
    label(&terms, &output)
}
