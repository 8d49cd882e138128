//! Checks of a generation against the tree above it, and of the losses at the end of a file.
use rustc_hash::FxHashSet;

use super::build::TreeBuilder;
use crate::{Fault, Generation, Location, Origin, Record, Report, Segment, SegmentId};

impl TreeBuilder {
    pub(super) fn check_generation(&mut self, at: &Location, generation: &mut Generation, report: &mut Report) {
        self.check_output(at, generation, report);
        self.check_thread(at, generation, report);
        self.check_trained_twice(at, generation, report);
        let context = &self.graph[self.contexts[&generation.context]];
        let first = generation.output.iter().filter_map(|&id| self.segment(id)).find(|segment| segment.extent() > 0);
        if context.tokens == 0 && first.is_some_and(|segment| segment.origin == Origin::Policy) {
            report.fault(self.lenient, at.key("context"), Fault::EmptyPrefix { generation: generation.id });
        }
        if generation.prompt_tokens.is_some() {
            self.check_prompt(at, generation, report);
        }
    }

    fn check_output(&mut self, at: &Location, generation: &mut Generation, report: &mut Report) {
        self.make_current(generation.context);
        let mut seen = FxHashSet::default();
        let output = std::mem::take(&mut generation.output);
        for (index, segment) in output.into_iter().enumerate() {
            let key = || at.key(format!("output[{index}]"));
            if !self.segments.contains_key(&segment) {
                report.fault(self.lenient, key(), Fault::MissingSegment { segment });
            } else if self.state.present.contains(&segment) || !seen.insert(segment) {
                report.fault(self.lenient, key(), Fault::DuplicateIdentity { segment });
            } else {
                generation.output.push(segment);
            }
        }
    }

    fn check_thread(&mut self, at: &Location, generation: &mut Generation, report: &mut Report) {
        let context = &self.graph[self.contexts[&generation.context]];
        let Some(root) = context.root else { return };
        if self.kv_evict() && self.state.newest.get(&root) != Some(&generation.context) {
            report.fault(self.lenient, at.key("context"), Fault::ForkUnderKvEvict { context: generation.context });
        }
        let thread = (generation.rollout.clone(), generation.thread.clone());
        let first = *self.state.roots.entry(thread).or_insert(root);
        if first != root {
            let fault = Fault::SecondRoot { thread: generation.thread.clone(), root, first };
            report.fault(self.lenient, at.key("thread"), fault);
            generation.thread = format!("{}~{}", generation.thread, root.0);
            let renamed = (generation.rollout.clone(), generation.thread.clone());
            self.state.roots.entry(renamed).or_insert(root);
        }
    }

    fn check_trained_twice(&self, at: &Location, generation: &Generation, report: &mut Report) {
        for (index, &id) in generation.output.iter().enumerate() {
            let (Some(&first), Some(segment)) = (self.owners.get(&id), self.segment(id)) else { continue };
            if segment.origin == Origin::Policy && has_loss(segment) {
                let fault = Fault::TrainedTwice { segment: id, first, second: generation.id };
                report.fault(self.lenient, at.key(format!("output[{index}]")), fault);
            }
        }
    }

    fn check_prompt(&self, at: &Location, generation: &Generation, report: &mut Report) {
        let path = self.pieces.path(self.tail(generation.context));
        let context: Vec<u32> = path
            .into_iter()
            .flat_map(|piece| {
                let span = self.pieces.span(piece);
                let tokens = self.segment(span.segment).and_then(|segment| segment.tokens.as_deref()).unwrap_or_default();
                tokens.get(span.start as usize..span.end as usize).unwrap_or_default().iter().copied()
            })
            .collect();
        let recorded = generation.prompt_tokens.as_deref().unwrap_or_default();
        if context == recorded {
            return;
        }
        let differs = context.iter().zip(recorded).position(|(a, b)| a != b);
        let first = differs.unwrap_or(context.len().min(recorded.len()));
        let (context, recorded) = (self.window(&context, first), self.window(recorded, first));
        let fault = Fault::PromptMismatch { generation: generation.id, at: first, context, recorded };
        report.fault(self.lenient, at.key("prompt_tokens"), fault);
    }

    /// A few ids around the position `at`, to be looked up in the tokenizer.
    fn window(&self, tokens: &[u32], at: usize) -> String {
        let window = &tokens[at.saturating_sub(2).min(tokens.len())..(at + 4).min(tokens.len())];
        format!("{window:?}")
    }

    /// Loss can only stand on what a generation sampled, which is known once all generations are in.
    pub(super) fn check_loss(&mut self, report: &mut Report) {
        let unsampled: Vec<usize> = self
            .records
            .iter()
            .enumerate()
            .filter(|(_, record)| match record {
                Record::Segment(segment) => segment.loss.is_some() && has_loss(segment) && !self.sampled(segment),
                _ => false,
            })
            .map(|(index, _)| index)
            .collect();
        for index in unsampled {
            if let Record::Segment(segment) = &mut self.records[index] {
                let fault = Fault::LossNotSampled { segment: segment.id };
                report.fault(self.lenient, self.locations[index].key("loss"), fault);
                segment.loss = None;
            }
        }
    }

    fn sampled(&self, segment: &Segment) -> bool {
        segment.origin == Origin::Policy && self.owners.contains_key(&segment.id)
    }

    /// Makes `state.present` hold the segments of a context.
    pub(super) fn make_current(&mut self, context: crate::ContextId) {
        if self.state.current != Some(context) {
            self.state.current = Some(context);
            let path = self.pieces.path(self.tail(context));
            self.state.present =
                path.into_iter().map(|piece| self.pieces.span(piece).segment).collect::<FxHashSet<SegmentId>>();
        }
    }
}

fn has_loss(segment: &Segment) -> bool {
    match &segment.loss {
        Some(runs) => runs.iter().any(|run| run.weight != 0.0),
        None => true,
    }
}
