use pleach_tree::{
    ContextId, Evict, Evicted, Fidelity, Generation, GenerationId, Header, Origin, Place, Record,
    RecordBuilder, Replacement, ReplacementKind, Role, SegmentId, TreeError,
};
use serde::Serialize;
use std::fmt;

/// The rollouts on which the packed layout is timed against segments, each a way in which contexts
/// share text.
///
/// What packing saves depends on how much the contexts of a file share, so a figure says little
/// without the name of its regime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Regime {
    /// One rollout that folds what it did into a summary twice: its contexts share the prompt and
    /// little else.
    SummaryFold,
    /// One rollout of sixteen turns that clears every tool result but the newest.
    ClearedResults,
    /// Eight rollouts of two calls each over one prompt of half the tokens.
    Group,
}

impl Regime {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 3] = [Self::SummaryFold, Self::ClearedResults, Self::Group];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::SummaryFold => "summary-fold",
            Self::ClearedResults => "cleared-results",
            Self::Group => "group",
        }
    }

    /// Eviction records that pack to about `tokens` tokens, with ids below `vocabulary`.
    ///
    /// # Errors
    /// None that a number of tokens that fits memory can bring about.
    pub fn records(self, tokens: usize, vocabulary: u32) -> Result<Vec<Record>, TreeError> {
        let mut story = Story::new(vocabulary)?;
        match self {
            Self::SummaryFold => story.fold(tokens)?,
            Self::ClearedResults => story.clear(tokens)?,
            Self::Group => story.group(tokens)?,
        }
        Ok(story.log.into_records())
    }
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rollout as it is written down.
struct Story {
    vocabulary: u32,
    log: RecordBuilder,
    /// Segments so far, which makes their tokens differ.
    segments: u32,
}

impl Story {
    fn new(vocabulary: u32) -> Result<Self, TreeError> {
        let log = RecordBuilder::new(Header::new("regime", Fidelity::Token))?;
        Ok(Self { vocabulary: vocabulary.max(1), log, segments: 0 })
    }

    fn segment(&mut self, role: Role, origin: Origin, len: usize) -> Result<SegmentId, TreeError> {
        let number = self.segments;
        self.segments += 1;
        // Spread over the vocabulary, so that no two segments begin alike and merge.
        let token = |at: u32| {
            (at + 1).wrapping_mul(2_654_435_761).wrapping_add(number.wrapping_mul(40_503)) >> 7
        };
        let tokens: Vec<u32> =
            (0..len.max(1) as u32).map(|at| token(at) % self.vocabulary).collect();
        self.log.tokens(role, origin, tokens)
    }

    fn prompt(&mut self, len: usize) -> Result<ContextId, TreeError> {
        let prompt = self.segment(Role::User, Origin::Human, len)?;
        self.log.append(None, [prompt])
    }

    /// What the policy samples under a context.
    fn sample(
        &mut self,
        rollout: usize,
        context: ContextId,
        len: usize,
    ) -> Result<SegmentId, TreeError> {
        let output = self.segment(Role::Assistant, Origin::Policy, len)?;
        let call = Generation::new(GenerationId(0), context, vec![output]);
        self.log.generation(call.in_rollout(format!("r{rollout}")))?;
        Ok(output)
    }

    /// A call and its result, both in the context that is returned.
    fn turn(
        &mut self,
        rollout: usize,
        context: ContextId,
        [call, result]: [usize; 2],
    ) -> Result<(ContextId, [SegmentId; 2]), TreeError> {
        let call = self.sample(rollout, context, call)?;
        let result = self.segment(Role::Tool, Origin::Environment, result)?;
        Ok((self.log.append(context, [call, result])?, [call, result]))
    }

    fn evict(
        &mut self,
        from: ContextId,
        evicted: &[SegmentId],
        replacement: Replacement,
    ) -> Result<ContextId, TreeError> {
        let evicted: Vec<Evicted> = evicted.iter().copied().map(Evicted::whole).collect();
        self.log.evict(Evict::new(from, evicted).with_replacement(replacement))
    }

    fn fold(&mut self, tokens: usize) -> Result<(), TreeError> {
        const ROUNDS: usize = 3;
        const TURNS: usize = 8;
        let (prompt, summary) = (tokens / 16, tokens / 32);
        let turn = (tokens - tokens / 16).saturating_sub(5 * summary) / ROUNDS / TURNS;
        let mut context = self.prompt(prompt)?;
        let mut before = Vec::new();
        for round in 0..ROUNDS {
            let mut spans = std::mem::take(&mut before);
            for _ in 0..TURNS {
                let (next, pieces) = self.turn(0, context, [turn / 4, turn - turn / 4])?;
                context = next;
                spans.extend(pieces);
            }
            let summary = self.sample(0, context, summary)?;
            if round + 1 < ROUNDS {
                let replacement =
                    Replacement::new(ReplacementKind::Summary, vec![summary], Place::BeforeFirst);
                context = self.evict(context, &spans, replacement)?;
                before.push(summary);
            }
        }
        Ok(())
    }

    fn clear(&mut self, tokens: usize) -> Result<(), TreeError> {
        const TURNS: usize = 16;
        let prompt = tokens / 8;
        let turn = (tokens - prompt) / TURNS;
        let (call, placeholder) = (turn / 9, turn / 28);
        let result = turn - 3 * call - placeholder;
        let mut context = self.prompt(prompt)?;
        for _ in 0..TURNS {
            let (next, [_, cleared]) = self.turn(0, context, [call, result])?;
            // The newest result is read once before it is cleared.
            let seen = self.sample(0, next, call)?;
            let next = self.log.append(next, [seen])?;
            let mark = self.segment(Role::Tool, Origin::Harness, placeholder)?;
            let kind = ReplacementKind::Placeholder;
            let replacement = Replacement::new(kind, vec![mark], Place::InPlace);
            context = self.evict(next, &[cleared], replacement)?;
        }
        Ok(())
    }

    fn group(&mut self, tokens: usize) -> Result<(), TreeError> {
        const ROLLOUTS: usize = 8;
        let each = tokens / 2 / ROLLOUTS;
        let context = self.prompt(tokens / 2)?;
        for rollout in 0..ROLLOUTS {
            let (next, _) = self.turn(rollout, context, [each / 4, each / 2])?;
            self.sample(rollout, next, each - each / 4 - each / 2)?;
        }
        Ok(())
    }
}
