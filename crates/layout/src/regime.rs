use pleach_tree::{
    Append, ContextId, Evict, Evicted, Extra, Fidelity, Generation, GenerationId, Header, Origin,
    Place, Record, Replacement, ReplacementKind, Role, Segment, SegmentId,
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
    pub fn records(self, tokens: usize, vocabulary: u32) -> Vec<Record> {
        let mut story = Story::new(vocabulary);
        match self {
            Self::SummaryFold => story.fold(tokens),
            Self::ClearedResults => story.clear(tokens),
            Self::Group => story.group(tokens),
        }
        story.records
    }
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Records as they are written down, with the next id of each kind.
struct Story {
    vocabulary: u32,
    records: Vec<Record>,
    segments: u32,
    contexts: u32,
    generations: u32,
}

impl Story {
    fn new(vocabulary: u32) -> Self {
        let header = Record::Header(Header::new("regime", Fidelity::Token));
        Self {
            vocabulary: vocabulary.max(1),
            records: vec![header],
            segments: 0,
            contexts: 0,
            generations: 0,
        }
    }

    fn segment(&mut self, role: Role, origin: Origin, len: usize) -> SegmentId {
        let id = SegmentId(self.segments);
        self.segments += 1;
        // Spread over the vocabulary, so that no two segments begin alike and merge.
        let token = |at: u32| {
            (at + 1).wrapping_mul(2_654_435_761).wrapping_add(id.0.wrapping_mul(40_503)) >> 7
        };
        let tokens = (0..len.max(1) as u32).map(|at| token(at) % self.vocabulary).collect();
        self.records.push(Record::Segment(Segment::new(id, role, origin).with_tokens(tokens)));
        id
    }

    fn prompt(&mut self, len: usize) -> ContextId {
        let prompt = self.segment(Role::User, Origin::Human, len);
        self.append(None, vec![prompt])
    }

    fn context(&mut self) -> ContextId {
        self.contexts += 1;
        ContextId(self.contexts - 1)
    }

    fn append(&mut self, from: Option<ContextId>, segments: Vec<SegmentId>) -> ContextId {
        let context = self.context();
        self.records.push(Record::Append(Append { context, from, segments, extra: Extra::new() }));
        context
    }

    /// What the policy samples under a context.
    fn sample(&mut self, rollout: usize, context: ContextId, len: usize) -> SegmentId {
        let output = self.segment(Role::Assistant, Origin::Policy, len);
        let mut generation = Generation::new(GenerationId(self.generations), context, vec![output]);
        generation.rollout = format!("r{rollout}");
        self.generations += 1;
        self.records.push(Record::Generation(generation));
        output
    }

    /// A call and its result, both in the context that is returned.
    fn turn(
        &mut self,
        rollout: usize,
        context: ContextId,
        [call, result]: [usize; 2],
    ) -> (ContextId, [SegmentId; 2]) {
        let call = self.sample(rollout, context, call);
        let result = self.segment(Role::Tool, Origin::Environment, result);
        (self.append(Some(context), vec![call, result]), [call, result])
    }

    fn evict(
        &mut self,
        from: ContextId,
        evicted: &[SegmentId],
        replacement: Replacement,
    ) -> ContextId {
        let context = self.context();
        self.records.push(Record::Evict(Box::new(Evict {
            context,
            from,
            evicted: evicted.iter().map(|&segment| Evicted::whole(segment)).collect(),
            replacement: Some(replacement),
            by: None,
            trigger: None,
            evidence: None,
            extra: Extra::new(),
        })));
        context
    }

    fn fold(&mut self, tokens: usize) {
        const ROUNDS: usize = 3;
        const TURNS: usize = 8;
        let (prompt, summary) = (tokens / 16, tokens / 32);
        let turn = (tokens - tokens / 16).saturating_sub(5 * summary) / ROUNDS / TURNS;
        let mut context = self.prompt(prompt);
        let mut before = Vec::new();
        for round in 0..ROUNDS {
            let mut spans = std::mem::take(&mut before);
            for _ in 0..TURNS {
                let (next, pieces) = self.turn(0, context, [turn / 4, turn - turn / 4]);
                context = next;
                spans.extend(pieces);
            }
            let summary = self.sample(0, context, summary);
            if round + 1 < ROUNDS {
                let replacement =
                    Replacement::new(ReplacementKind::Summary, vec![summary], Place::BeforeFirst);
                context = self.evict(context, &spans, replacement);
                before.push(summary);
            }
        }
    }

    fn clear(&mut self, tokens: usize) {
        const TURNS: usize = 16;
        let prompt = tokens / 8;
        let turn = (tokens - prompt) / TURNS;
        let (call, placeholder) = (turn / 9, turn / 28);
        let result = turn - 3 * call - placeholder;
        let mut context = self.prompt(prompt);
        for _ in 0..TURNS {
            let (next, [_, cleared]) = self.turn(0, context, [call, result]);
            // The newest result is read once before it is cleared.
            let seen = self.sample(0, next, call);
            let next = self.append(Some(next), vec![seen]);
            let mark = self.segment(Role::Tool, Origin::Harness, placeholder);
            let replacement =
                Replacement::new(ReplacementKind::Placeholder, vec![mark], Place::InPlace);
            context = self.evict(next, &[cleared], replacement);
        }
    }

    fn group(&mut self, tokens: usize) {
        const ROLLOUTS: usize = 8;
        let each = tokens / 2 / ROLLOUTS;
        let context = self.prompt(tokens / 2);
        for rollout in 0..ROLLOUTS {
            let (next, _) = self.turn(rollout, context, [each / 4, each / 2]);
            self.sample(rollout, next, each - each / 4 - each / 2);
        }
    }
}
