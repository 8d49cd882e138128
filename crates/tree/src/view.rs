use crate::{BranchTree, Context, Generation, Origin, PieceId, SegmentId, Span};

/// What a generation saw and said: the tokens of its context followed by the tokens of its output.
#[derive(Debug, Clone, Copy)]
pub struct View<'t> {
    tree: &'t BranchTree,
    generation: &'t Generation,
    context: &'t Context,
}

/// A token of a generation's output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputToken {
    /// The segment it belongs to.
    pub segment: SegmentId,
    /// Its index in that segment.
    pub at: u32,
    /// Its id.
    pub token: u32,
    /// Its index in the concatenated output.
    pub offset: u32,
    /// Its loss weight; `None` where the policy did not sample it.
    pub weight: Option<f64>,
}

impl<'t> View<'t> {
    pub(crate) fn new(
        tree: &'t BranchTree,
        generation: &'t Generation,
        context: &'t Context,
    ) -> Self {
        Self { tree, generation, context }
    }

    /// The generation.
    pub fn generation(&self) -> &'t Generation {
        self.generation
    }

    /// The context it was sampled under.
    pub fn context(&self) -> &'t Context {
        self.context
    }

    /// The last piece of its context.
    pub fn tail(&self) -> Option<PieceId> {
        self.context.tail()
    }

    /// The ranges of its context, in order.
    pub fn context_spans(&self) -> Vec<Span> {
        let pieces = self.tree.pieces();
        self.tree.path(self.tail()).into_iter().map(|id| pieces[id.index()].span).collect()
    }

    /// The ranges of its output, in order: whole segments.
    pub fn output_spans(&self) -> impl Iterator<Item = Span> + use<'t> {
        let tree = self.tree;
        self.generation.output.iter().filter_map(move |&segment| {
            let end = u32::try_from(tree.segment(segment)?.extent()).ok()?;
            Some(Span { segment, start: 0, end })
        })
    }

    /// Number of tokens of context and output.
    pub fn len(&self) -> usize {
        self.context.tokens() + self.output_spans().map(|span| span.len()).sum::<usize>()
    }

    /// Whether it holds no token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The token ids of context and output, in order.
    pub fn tokens(&self) -> Vec<u32> {
        let spans = self.context_spans().into_iter().chain(self.output_spans());
        let mut tokens = Vec::with_capacity(self.len());
        for span in spans {
            tokens.extend_from_slice(self.tree.tokens(span));
        }
        tokens
    }

    /// The tokens of the output with their loss weights, in order.
    ///
    /// A weight is the segment's declared one, else 1; 0 where an earlier generation has the loss
    /// of the segment.
    pub fn output(&self) -> impl Iterator<Item = OutputToken> + use<'t> {
        let (tree, id) = (self.tree, self.generation.id);
        let tokens =
            self.generation.output.iter().filter_map(|&segment| tree.segment(segment)).flat_map(
                move |segment| {
                    let sampled = segment.origin == Origin::Policy;
                    let owned = tree.owner(segment.id) == Some(id);
                    segment.tokens.iter().flatten().zip(0..).map(move |(&token, at)| {
                        let weight =
                            if owned { segment.declared_weight(at).unwrap_or(1.0) } else { 0.0 };
                        OutputToken {
                            segment: segment.id,
                            at,
                            token,
                            offset: 0,
                            weight: sampled.then_some(weight),
                        }
                    })
                },
            );
        tokens.zip(0..).map(|(token, offset)| OutputToken { offset, ..token })
    }
}

impl BranchTree {
    /// The token ids of a range; empty where its segment is not tokenised.
    pub fn tokens(&self, span: Span) -> &[u32] {
        self.segment(span.segment)
            .and_then(|segment| segment.tokens.as_ref())
            .and_then(|tokens| tokens.get(span.start as usize..span.end as usize))
            .unwrap_or_default()
    }
}
