//! The union mask, which puts every token once: the counter-example to the packed trie.
use crate::{
    batch::BatchTerms,
    decoder::Decoder,
    error::TrainError,
    evaluation::{Placement, TermLogp, label},
    objective::NllConfig,
};
use burn::module::Module;
use pleach_kernels::ViewMask;
use pleach_layout::{Identity, LayoutError, Layouts, Sequence, Term};
use pleach_tree::View;
use std::collections::{BTreeMap, HashMap};

/// One rollout under the published union mask: every token once, a view and positions by row.
///
/// It stands here to be compared with and not to be trained on. Under reprefill it is not equal to
/// re-encoding the live views for models of two or more layers: a survivor of an eviction is encoded
/// once, so it still carries what it saw before. [`Layouts::certificate`] says for which trees that
/// makes no difference. Published as the packed mask of arXiv 2609.00865.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Union {
    /// Token ids in order of first appearance, each token of the rollout once.
    pub tokens: Vec<u32>,
    /// Per row the tokens that it sees, in the order of its live view and itself last; a key's
    /// position is its index here.
    pub visible: Vec<Vec<u32>>,
    /// Loss terms; sources are rows.
    pub terms: Vec<Term>,
}

impl Union {
    /// The union of each thread, threads in order of their first generation.
    ///
    /// A row that predicts sees what was live when its target was sampled; where it predicts more
    /// than once, the first time counts. A row that predicts nothing sees what was live when it
    /// first appeared. Memory is that of the mask, so this is for clipped or small rollouts.
    ///
    /// # Errors
    /// More than 2^31 - 1 tokens.
    pub fn of(layouts: &Layouts<'_>) -> Result<Vec<Self>, LayoutError> {
        let full = layouts.full()?;
        let mut threads: Vec<Vec<View<'_>>> = Vec::new();
        let mut known: HashMap<(&str, &str), usize> = HashMap::new();
        for view in layouts.tree().views() {
            let generation = view.generation();
            let next = threads.len();
            let at = *known.entry((&generation.rollout, &generation.thread)).or_insert(next);
            if at == next {
                threads.push(Vec::new());
            }
            threads[at].push(view);
        }
        let rows = full.sequences.into_iter().zip(&full.identities);
        let union = |(views, (sequence, identities)): (Vec<View<'_>>, (Sequence, &Vec<_>))| {
            of_thread(&views, sequence, identities)
        };
        Ok(threads.into_iter().zip(rows).map(union).collect())
    }
}

fn of_thread(views: &[View<'_>], sequence: Sequence, identities: &[Identity]) -> Union {
    let Sequence { tokens, terms: flattened, .. } = sequence;
    let place: HashMap<Identity, u32> = identities.iter().copied().zip(0..).collect();
    let terms_of: HashMap<u32, &[Term]> = flattened
        .chunk_by(|a, b| a.generation == b.generation)
        .map(|same| (same[0].generation, same))
        .collect();
    let mut predicting: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut visible: Vec<Vec<u32>> = vec![Vec::new(); tokens.len()];
    let mut terms = Vec::new();
    for view in views {
        let spans = view.context_spans().into_iter().chain(view.output_spans());
        let identities = spans.flat_map(|span| {
            (span.start..span.end).map(move |offset| Identity { segment: span.segment.0, offset })
        });
        let live: Vec<u32> =
            identities.filter_map(|identity| place.get(&identity).copied()).collect();
        for (index, &row) in live.iter().enumerate() {
            let seen = &mut visible[row as usize];
            if seen.is_empty() {
                seen.extend_from_slice(&live[..=index]);
            }
        }
        let context = view.context().tokens();
        for term in terms_of.get(&view.generation().id.0).copied().unwrap_or_default() {
            let live = &live[..context + term.offset as usize];
            let Some(&source) = live.last() else { continue };
            predicting.entry(source).or_insert_with(|| live.to_vec());
            terms.push(Term { source, ..*term });
        }
    }
    for (row, live) in predicting {
        visible[row as usize] = live;
    }
    Union { tokens, visible, terms }
}

/// Log-probabilities of a rollout's loss terms under the union mask.
///
/// # Errors
/// Views that are not valid, terms outside the tokens, and whatever the decoder cannot take.
pub fn union_log_probabilities(
    model: &Decoder,
    union: &Union,
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
        terms.ids.push(term.id());
    }
    let model = model.valid();
    let mask = ViewMask::new(&union.visible, &Placement::of(&model)?.device)?;
    let hidden_btc = model.hidden_under_views(&union.tokens, &mask)?;
    let output = NllConfig::new().init().measure(&model, hidden_btc, &terms)?;
    label(&terms, &output)
}
