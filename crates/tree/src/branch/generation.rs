//! Checks of a generation against the tree above it, and of the losses at the end of a file.
use rustc_hash::FxHashSet;

use super::build::TreeBuilder;
use crate::{Fault, Generation, Location, LossRun, Origin, Record, Report, Segment, SegmentId};

impl TreeBuilder {
    pub(super) fn check_generation(
        &mut self,
        at: &Location,
        generation: &mut Generation,
        report: &mut Report,
    ) {
        self.check_output(at, generation, report);
        self.check_generation_author(at, generation, report);
        self.check_thread(at, generation, report);
        self.check_trained_twice(at, generation, report);
        self.check_prefix(at, generation, report);
        if generation.prompt_tokens.is_some() {
            self.check_prompt(at, generation, report);
        }
    }

    /// The first token of a view has no term, so it can have no weight either.
    ///
    /// What is text yet is checked once it is tokens: a chat template may put glue before it.
    fn check_prefix(&mut self, at: &Location, generation: &Generation, report: &mut Report) {
        if self.tree.graph[self.tree.contexts[&generation.context]].tokens > 0 {
            return;
        }
        let first = generation
            .output
            .iter()
            .find(|&&id| self.extent(id) > 0)
            .and_then(|id| self.tree.segments.get(id));
        let Some(Record::Segment(segment)) = first.map(|&index| &mut self.tree.records[index])
        else {
            return;
        };
        let trained =
            segment.declared_weight(0) != Some(0.0) && !self.tree.owners.contains_key(&segment.id);
        if segment.origin == Origin::Policy && segment.tokens.is_some() && trained {
            let fault = Fault::EmptyPrefix { generation: generation.id };
            if !report.fault(at.key("context"), fault) {
                segment.unweight_first();
            }
        }
    }

    fn check_output(&mut self, at: &Location, generation: &mut Generation, report: &mut Report) {
        self.make_current(generation.context);
        let mut seen = FxHashSet::default();
        let output = std::mem::take(&mut generation.output);
        for (index, segment) in output.into_iter().enumerate() {
            let key = || at.key(format!("output[{index}]"));
            if !self.tree.segments.contains_key(&segment) {
                report.fault(key(), Fault::MissingSegment { segment });
            } else if self.state.present.contains(&segment) || !seen.insert(segment) {
                report.fault(key(), Fault::DuplicateIdentity { segment });
            } else {
                generation.output.push(segment);
            }
        }
    }

    /// What a call says was sampled by a model, the policy or another one; a call whose output
    /// somebody else wrote has a wrong origin and would train nothing.
    fn check_generation_author(&self, at: &Location, generation: &Generation, report: &mut Report) {
        let sampled =
            |segment: &Segment| matches!(segment.origin, Origin::Policy | Origin::ExternalModel);
        let mut output =
            generation.output.iter().filter_map(|&id| self.tree.segment(id)).peekable();
        let recorded = output.peek().is_some() && generation.unrecorded.is_empty();
        if recorded && !output.any(sampled) {
            report.fault(at.key("output"), Fault::NotSampled { generation: generation.id });
        }
    }

    fn check_thread(&mut self, at: &Location, generation: &mut Generation, report: &mut Report) {
        let context = &self.tree.graph[self.tree.contexts[&generation.context]];
        let Some(root) = context.root else { return };
        if self.kv_evict() && self.state.newest.get(&root) != Some(&generation.context) {
            report
                .fault(at.key("context"), Fault::ForkUnderKvEvict { context: generation.context });
        }
        let thread = (generation.rollout.clone(), generation.thread.clone());
        let first = self.state.roots.get(&thread).copied().unwrap_or(root);
        if first != root {
            let fault = Fault::SecondRoot { thread: generation.thread.clone(), root, first };
            report.fault(at.key("thread"), fault);
            let mut renamed =
                (generation.rollout.clone(), format!("{}~{}", generation.thread, root.0));
            while self.state.roots.get(&renamed).is_some_and(|&other| other != root) {
                renamed.1.push('~');
            }
            generation.thread = renamed.1;
        }
    }

    fn check_trained_twice(
        &mut self,
        at: &Location,
        generation: &mut Generation,
        report: &mut Report,
    ) {
        for (index, id) in generation.output.iter_mut().enumerate() {
            let (Some(&first), Some(segment)) = (self.tree.owners.get(id), self.tree.segment(*id))
            else {
                continue;
            };
            if segment.origin == Origin::Policy && has_loss(segment) {
                let fault = Fault::TrainedTwice { segment: *id, first, second: generation.id };
                let copy = segment.clone();
                report.fault(at.key(format!("output[{index}]")), fault);
                if report.is_lenient() {
                    *id = self.keep_copy(at, copy);
                }
            }
        }
    }

    /// Stores a segment once more without loss; its id comes from the far end of the space, where
    /// no writer counts.
    fn keep_copy(&mut self, at: &Location, mut copy: Segment) -> SegmentId {
        copy.id = (0..=u32::MAX)
            .rev()
            .map(SegmentId)
            .find(|id| !self.tree.segments.contains_key(id))
            .unwrap_or(copy.id);
        let end = copy.extent() as u32;
        copy.loss = copy
            .tokens
            .is_some()
            .then(|| (0..end.min(1)).map(|start| LossRun { start, end, weight: 0.0 }).collect());
        let id = copy.id;
        let index = self.keep(at.clone(), Record::Segment(copy));
        self.tree.segments.insert(id, index);
        id
    }

    fn check_prompt(&self, at: &Location, generation: &mut Generation, report: &mut Report) {
        let path = self.tree.pieces.path(self.tail(generation.context));
        let context: Vec<u32> = path
            .into_iter()
            .flat_map(|piece| {
                let span = self.tree.pieces.span(piece);
                let tokens = self
                    .tree
                    .segment(span.segment)
                    .and_then(|segment| segment.tokens.as_deref())
                    .unwrap_or_default();
                tokens
                    .get(span.start as usize..span.end as usize)
                    .unwrap_or_default()
                    .iter()
                    .copied()
            })
            .collect();
        let recorded = generation.prompt_tokens.as_deref().unwrap_or_default();
        if context == recorded {
            return;
        }
        let differs = context.iter().zip(recorded).position(|(a, b)| a != b);
        let first = differs.unwrap_or(context.len().min(recorded.len()));
        let (context, recorded) = (self.window(&context, first), self.window(recorded, first));
        let fault =
            Fault::PromptMismatch { generation: generation.id, at: first, context, recorded };
        report.fault(at.key("prompt_tokens"), fault);
        generation.prompt_tokens = None;
    }

    /// A few ids around the position `at`, to be looked up in the tokenizer.
    fn window(&self, tokens: &[u32], at: usize) -> String {
        let window = &tokens[at.saturating_sub(2).min(tokens.len())..(at + 4).min(tokens.len())];
        format!("{window:?}")
    }

    /// Loss can only stand on what a generation sampled, which is known once all generations are
    /// in.
    pub(super) fn check_loss(&mut self, report: &mut Report) {
        let unsampled: Vec<usize> = self
            .tree
            .records
            .iter()
            .enumerate()
            .filter(|(_, record)| match record {
                Record::Segment(segment) => {
                    segment.loss.is_some() && has_loss(segment) && !self.sampled(segment)
                }
                _ => false,
            })
            .map(|(index, _)| index)
            .collect();
        for index in unsampled {
            if let Record::Segment(segment) = &mut self.tree.records[index] {
                let fault = Fault::LossNotSampled { segment: segment.id };
                report.fault(self.tree.locations[index].key("loss"), fault);
                segment.loss = None;
            }
        }
    }

    fn sampled(&self, segment: &Segment) -> bool {
        segment.origin == Origin::Policy && self.tree.owners.contains_key(&segment.id)
    }

    /// Makes `state.present` hold the segments of a context.
    pub(super) fn make_current(&mut self, context: crate::ContextId) {
        if self.state.current != Some(context) {
            self.state.current = Some(context);
            let path = self.tree.pieces.path(self.tail(context));
            self.state.present = path
                .into_iter()
                .map(|piece| self.tree.pieces.span(piece).segment)
                .collect::<FxHashSet<SegmentId>>();
        }
    }
}

fn has_loss(segment: &Segment) -> bool {
    match &segment.loss {
        Some(runs) => runs.iter().any(|run| run.weight != 0.0),
        None => true,
    }
}
