use crate::{
    ContextId, Evict, Evicted, Evidence, Generation, GenerationId, Header, Origin, Place, Record,
    RecordBuilder, Replacement, ReplacementKind, Role, Segment, SegmentId, TreeError,
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
///
/// # Errors
/// [`TreeError::Rejected`] for a request that no record can hold: log-probabilities that are not
/// one a token, an id outside the header's vocabulary, an output without anything before it.
pub fn records_of_requests(
    header: Header,
    rollout: &str,
    requests: &[Request],
) -> Result<Vec<Record>, TreeError> {
    let (log, view, pending) = (RecordBuilder::new(header)?, Vec::new(), Vec::new());
    let mut timeline = Timeline { log, view, pending, context: None };
    for request in requests {
        let context = timeline.arrive(&request.prompt)?;
        let output = Segment {
            logprobs: request.logprobs.clone(),
            ..Segment::new(SegmentId(0), Role::Assistant, Origin::Policy)
        };
        let output = timeline.segment(output, &request.output)?;
        timeline.log.generation(Generation {
            rollout: rollout.to_owned(),
            prompt_tokens: Some(request.prompt.clone()),
            ..Generation::new(GenerationId(0), context, vec![output])
        })?;
        timeline.pending.push(output);
        timeline.push(output, &request.output);
    }
    Ok(timeline.log.into_records())
}

/// One token of the view so far.
#[derive(Debug, Clone, Copy)]
struct Known {
    segment: SegmentId,
    at: u32,
    token: u32,
}

/// The view as it goes from request to request.
struct Timeline {
    log: RecordBuilder,
    view: Vec<Known>,
    /// Segments of the view that no context holds yet.
    pending: Vec<SegmentId>,
    /// The context that holds the rest.
    context: Option<ContextId>,
}

impl Timeline {
    /// The context of a prompt, made from the one before.
    fn arrive(&mut self, prompt: &[u32]) -> Result<ContextId, TreeError> {
        let start = self
            .view
            .iter()
            .zip(prompt)
            .take_while(|(known, token)| known.token == **token)
            .count();
        if start < self.view.len() {
            let from = self.append()?;
            self.replace(from, start, prompt)?;
        } else {
            self.follow(&prompt[start..])?;
        }
        self.append()
    }

    /// The context with what is pending behind it.
    fn append(&mut self) -> Result<ContextId, TreeError> {
        let context = match self.context {
            Some(context) if self.pending.is_empty() => context,
            from => self.log.append(from, std::mem::take(&mut self.pending))?,
        };
        self.context = Some(context);
        Ok(context)
    }

    /// Evicts what lies between the common start and the survivors behind it, of which at least one
    /// token goes.
    fn replace(&mut self, from: ContextId, start: usize, prompt: &[u32]) -> Result<(), TreeError> {
        let (kept, at) = survivors(&self.view[start + 1..], &prompt[start..]);
        let (added, behind) = (&prompt[start..start + at], &prompt[start + at + kept..]);
        let survivors = self.view.split_off(self.view.len() - kept);
        let mut evict =
            Evict::new(from, ranges(&self.view.split_off(start))).with_evidence(Evidence::Inferred);
        if !added.is_empty() {
            let new = Segment::new(SegmentId(0), Role::User, Origin::Harness);
            let new = self.segment(new, added)?;
            self.push(new, added);
            let kind = ReplacementKind::Summary;
            evict = evict.with_replacement(Replacement::new(kind, vec![new], Place::BeforeFirst));
        }
        self.view.extend(survivors);
        self.context = Some(self.log.evict(evict)?);
        self.follow(behind)
    }

    /// What the environment put behind everything else.
    fn follow(&mut self, tokens: &[u32]) -> Result<(), TreeError> {
        if !tokens.is_empty() {
            let new = Segment::new(SegmentId(0), Role::User, Origin::Environment);
            let new = self.segment(new, tokens)?;
            self.pending.push(new);
            self.push(new, tokens);
        }
        Ok(())
    }

    fn push(&mut self, segment: SegmentId, tokens: &[u32]) {
        self.view.extend((0..).zip(tokens).map(|(at, &token)| Known { segment, at, token }));
    }

    fn segment(&mut self, segment: Segment, tokens: &[u32]) -> Result<SegmentId, TreeError> {
        self.log.segment(segment.with_tokens(tokens.to_vec()))
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
