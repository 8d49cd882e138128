use crate::{
    Append, ContextId, Evict, Evicted, Evidence, Extra, Generation, GenerationId, Header, Origin,
    Place, Record, Replacement, ReplacementKind, Role, Segment, SegmentId,
};

/// One request to a policy as it is seen from outside: what stood before it, and what it sampled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Token ids of the prompt.
    pub prompt: Vec<u32>,
    /// Token ids that were sampled.
    pub output: Vec<u32>,
    /// Their log-probabilities when they were sampled, in nats.
    pub logprobs: Option<Vec<f64>>,
}

/// Records of one rollout of which only the requests are known, in the order in which they were
/// made.
///
/// A request that continues the one before is an append. One that differs is a junction: the common
/// start survived, and so did the longest end of the view before that stands in the rest of the
/// prompt (the last time that it does). What lay between was evicted, what stands there now
/// replaces it, and what follows the survivors is new. Every live view is exact, token for token;
/// which token survived is inferred.
pub fn records_of_requests(header: Header, rollout: &str, requests: &[Request]) -> Vec<Record> {
    let mut writer = Writer { records: vec![Record::Header(header)], ..Writer::default() };
    for (index, request) in (0..).zip(requests) {
        writer.arrive(&request.prompt);
        let output = Segment {
            logprobs: request.logprobs.clone(),
            ..Segment::new(SegmentId(0), Role::Assistant, Origin::Policy)
        };
        let output = writer.segment(output, &request.output);
        writer.records.push(Record::Generation(Generation {
            rollout: rollout.to_owned(),
            prompt_tokens: Some(request.prompt.clone()),
            ..Generation::new(GenerationId(index), writer.context, vec![output])
        }));
        writer.pending.push(output);
        writer.push(output, &request.output);
    }
    writer.records
}

/// One token of the view so far.
#[derive(Debug, Clone, Copy)]
struct Known {
    segment: SegmentId,
    at: u32,
    token: u32,
}

struct Writer {
    records: Vec<Record>,
    view: Vec<Known>,
    /// Segments of the view that no context holds yet.
    pending: Vec<SegmentId>,
    context: ContextId,
    segments: u32,
    contexts: u32,
}

impl Default for Writer {
    fn default() -> Self {
        let context = ContextId(0);
        Self {
            records: Vec::new(),
            view: Vec::new(),
            pending: Vec::new(),
            context,
            segments: 0,
            contexts: 0,
        }
    }
}

impl Writer {
    /// Makes the context of a prompt the current one.
    fn arrive(&mut self, prompt: &[u32]) {
        let start = self
            .view
            .iter()
            .zip(prompt)
            .take_while(|(known, token)| known.token == **token)
            .count();
        if start < self.view.len() {
            self.append();
            self.replace(start, prompt);
        } else {
            self.follow(&prompt[start..]);
        }
        self.append();
    }

    /// Puts what is pending behind the current context.
    fn append(&mut self) {
        let first = self.contexts == 0;
        if self.pending.is_empty() && !first {
            return;
        }
        let from = (!first).then_some(self.context);
        let segments = std::mem::take(&mut self.pending);
        self.context = self.next_context();
        self.records.push(Record::Append(Append {
            context: self.context,
            from,
            segments,
            extra: Extra::new(),
        }));
    }

    /// Evicts what lies between the common start and the survivors behind it, of which at least one
    /// token goes.
    fn replace(&mut self, start: usize, prompt: &[u32]) {
        let (kept, at) = survivors(&self.view[start + 1..], &prompt[start..]);
        let (added, behind) = (&prompt[start..start + at], &prompt[start + at + kept..]);
        let survivors = self.view.split_off(self.view.len() - kept);
        let evicted = ranges(&self.view.split_off(start));
        let replacement = (!added.is_empty()).then(|| {
            let new = self.segment(Segment::new(SegmentId(0), Role::User, Origin::Harness), added);
            self.push(new, added);
            Replacement::new(ReplacementKind::Summary, vec![new], Place::BeforeFirst)
        });
        self.view.extend(survivors);
        let (from, context) = (self.context, self.next_context());
        self.context = context;
        let evidence = Some(Evidence::Inferred);
        let evict = Evict {
            context,
            from,
            evicted,
            replacement,
            by: None,
            trigger: None,
            evidence,
            extra: Extra::new(),
        };
        self.records.push(Record::Evict(Box::new(evict)));
        self.follow(behind);
    }

    /// What the environment put behind everything else.
    fn follow(&mut self, tokens: &[u32]) {
        if tokens.is_empty() {
            return;
        }
        let new = self.segment(Segment::new(SegmentId(0), Role::User, Origin::Environment), tokens);
        self.pending.push(new);
        self.push(new, tokens);
    }

    fn push(&mut self, segment: SegmentId, tokens: &[u32]) {
        self.view.extend((0..).zip(tokens).map(|(at, &token)| Known { segment, at, token }));
    }

    fn segment(&mut self, segment: Segment, tokens: &[u32]) -> SegmentId {
        let id = SegmentId(self.segments);
        self.segments += 1;
        self.records.push(Record::Segment(Segment { id, ..segment }.with_tokens(tokens.to_vec())));
        id
    }

    fn next_context(&mut self) -> ContextId {
        self.contexts += 1;
        ContextId(self.contexts - 1)
    }
}

/// The longest end of a view that stands somewhere in a prompt, the last time that it does: how
/// many tokens, and where they start.
///
/// Both are read backwards, as a prefix that is looked for in a text (Knuth, Morris and Pratt), in
/// time that grows with their lengths.
fn survivors(view: &[Known], prompt: &[u32]) -> (usize, usize) {
    let pattern: Vec<u32> = view.iter().rev().map(|known| known.token).collect();
    let step = |borders: &[usize], mut length: usize, token: u32| {
        while length > 0 && pattern.get(length) != Some(&token) {
            length = borders[length - 1];
        }
        length + usize::from(pattern.get(length) == Some(&token))
    };
    let mut borders = vec![0; pattern.len()];
    for at in 1..pattern.len() {
        borders[at] = step(&borders, borders[at - 1], pattern[at]);
    }
    let (mut longest, mut start, mut length) = (0, prompt.len(), 0);
    for (at, &token) in prompt.iter().enumerate().rev() {
        length = step(&borders, length, token);
        if length > longest {
            (longest, start) = (length, at);
        }
    }
    (longest, start)
}

/// Runs of neighbours in one segment.
fn ranges(tokens: &[Known]) -> Vec<Evicted> {
    let together = |a: &Known, b: &Known| a.segment == b.segment && a.at + 1 == b.at;
    let run = |run: &[Known]| {
        let (first, last) = (run[0], run[run.len() - 1]);
        Evicted::range(first.segment, first.at, last.at + 1)
    };
    tokens.chunk_by(together).map(run).collect()
}
