//! Runs of AgentFold (arXiv 2510.24699), replayed from raw outputs as the paper describes it.
//!
//! A line, or a document, is
//! `{"harness":"agentfold","system","question","steps":[{"output","observation"}]}`. Every output
//! but the first one holds a folding directive, an object `{"range":[k, t-1],"summary"}`, which may
//! also stand beside it as `fold`. The next context is the question, the summaries of earlier
//! steps, and the last interaction: what the output says behind its directive, and the observation.
//! So at each step the summaries and the interaction of the steps k to t-1 leave, with the
//! reasoning and the directive themselves, and the summary stands where the first of them stood;
//! the call that says it is the author.
//!
//! How the harness words the parts of its prompt is not recorded: they are the bare texts, and the
//! fidelity is `inferred`.
use std::ops::RangeInclusive;

use pleach_tree::{Fidelity, Origin, Part, ReadOptions, ReplacementKind, Role, Segment, Trigger};
use serde::Deserialize;
use serde_json::Value;

use crate::core::format::Format;
use crate::core::script::{self, Author, Call, Change, Cursor, Item, List, Script, Spot, Step};
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a run of AgentFold is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("agentfold", "an AgentFold run of raw outputs", is_run, convert)
        .with_least(Shape::answers_in_steps);

fn is_run(shape: &Shape) -> bool {
    let steps = shape.has("question") && shape.has("steps[].output");
    steps && (shape.is("harness", &["agentfold"]) || shape.has("steps[].fold"))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Run {
    system: Option<String>,
    question: String,
    model: Option<String>,
    steps: Vec<RunStep>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RunStep {
    output: String,
    observation: Option<String>,
    fold: Option<Fold>,
}

/// A folding directive.
#[derive(Debug, Clone, Deserialize)]
struct Fold {
    range: (u32, u32),
    summary: String,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut script = Script::new("agentfold", options);
    script.draft.header.fidelity = Fidelity::Inferred;
    let file = script.draft.file(&member);
    let mut report = script.draft.report.take();
    let mut count = 0;
    member.values(options, &mut report, |run: Run, at, _| {
        count += 1;
        let conversation =
            if count == 1 { 0 } else { script.conversation_of(&format!("r{}", count - 1), "main") };
        let spot = Spot { file, at: at.clone() };
        Workspace {
            cursor: Cursor::new(conversation),
            spot,
            heads: Vec::new(),
            blocks: Vec::new(),
        }
        .run(&mut script, run);
    })?;
    script.draft.report.diagnostics.append(&mut report.diagnostics);
    script.play()
}

/// Steps that stand in the context as one block.
#[derive(Debug, Clone)]
struct FoldedSteps {
    steps: RangeInclusive<u32>,
    /// Nodes, and the segment of a node where only that stands there.
    nodes: Vec<(usize, Option<usize>)>,
}

/// What the context is made of.
struct Workspace {
    cursor: Cursor,
    spot: Spot,
    heads: Vec<usize>,
    blocks: Vec<FoldedSteps>,
}

impl Workspace {
    fn run(mut self, script: &mut Script, run: Run) {
        if let Some(system) = run.system {
            self.head(script, "system", script::text(Role::System, Origin::Harness, system));
        }
        self.head(script, "question", script::text(Role::User, Origin::Human, run.question));
        for (index, step) in run.steps.into_iter().enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            self.step(script, step, number, run.model.as_deref(), &format!("steps[{index}]"));
        }
    }

    fn head(&mut self, script: &mut Script, key: &str, segment: Segment) {
        let segment = self.spot.segment(key, segment);
        let node = self.node(script, Step::Put(vec![segment]));
        self.heads.push(node);
    }

    fn step(
        &mut self,
        script: &mut Script,
        step: RunStep,
        number: u32,
        model: Option<&str>,
        key: &str,
    ) {
        let found = directive(&step.output);
        let (fold, cut) = match found {
            Some((fold, start, end)) => (Some(step.fold.unwrap_or(fold)), Some((start, end))),
            None => (step.fold, None),
        };
        let said = |part: &str| self.spot.segment(key, script::said(Part::Content, part));
        let output: Vec<Segment> = match cut {
            Some((start, end)) => {
                [&step.output[..start], &step.output[start..end], &step.output[end..]]
                    .map(said)
                    .into()
            }
            None => vec![said(&step.output)],
        };
        let rest = output.len() - 1;
        let call = Call { output, model: model.map(Into::into), ..Call::default() };
        let call = self.node(script, Step::Call(call));
        self.fold(script, fold, call, rest, number, key);
        let mut nodes = vec![(call, Some(rest))];
        if let Some(observation) = step.observation {
            let segment = script::text(Role::User, Origin::Environment, observation);
            let segment = self.spot.segment(format!("{key}.observation"), segment);
            nodes.push((self.node(script, Step::Put(vec![segment])), None));
        }
        self.blocks.push(FoldedSteps { steps: number..=number, nodes });
    }

    /// Puts a summary for the blocks of its range; what the output says before its last part leaves
    /// too.
    fn fold(
        &mut self,
        script: &mut Script,
        fold: Option<Fold>,
        call: usize,
        rest: usize,
        number: u32,
        key: &str,
    ) {
        let Some(fold) = fold else {
            if number > 1 {
                let message =
                    "the output holds no folding directive; nothing is folded at this step";
                script.draft.fault(&self.spot.at, &format!("{key}.output"), "no-fold", message);
            }
            return;
        };
        let (from, to) = fold.range;
        let inside = |block: &FoldedSteps| from <= *block.steps.start() && *block.steps.end() <= to;
        let touched =
            |block: &FoldedSteps| from <= *block.steps.end() && *block.steps.start() <= to;
        let exact = self.blocks.iter().filter(|block| touched(block)).all(inside)
            && self.blocks.iter().any(inside)
            && to < number;
        if !exact {
            let message = format!(
                "no blocks of the context make up the steps {from} to {to}; nothing is folded at this step"
            );
            script.draft.fault(&self.spot.at, &format!("{key}.output"), "fold-range", message);
            return;
        }
        let first = self.blocks.iter().position(inside).unwrap_or_default();
        let mut summary = script::text(Role::User, Origin::Policy, fold.summary);
        summary = self.spot.segment(format!("{key}#summary"), summary);
        let mut items: Vec<Item> = self.heads.iter().copied().map(Item::Of).collect();
        let mut summary = Some(summary);
        for (at, block) in self.blocks.iter().enumerate() {
            if at == first {
                items.extend(summary.take().map(|summary| Item::New(vec![summary])));
            }
            if !inside(block) {
                items.extend(block.nodes.iter().map(|&(node, part)| {
                    part.map_or(Item::Of(node), |part| Item::Part(node, part))
                }));
            }
        }
        items.push(Item::Part(call, rest));
        let change = Change::new(ReplacementKind::Summary)
            .by(Author::Of(call))
            .trigger(Some(Trigger::Policy));
        let list = self.node(script, Step::List(Box::new(List { items, change })));
        self.blocks.retain(|block| !inside(block));
        self.blocks.insert(first, FoldedSteps { steps: from..=to, nodes: vec![(list, None)] });
    }

    fn node(&mut self, script: &mut Script, step: Step) -> usize {
        self.cursor.push(script, &self.spot, step)
    }
}

/// The first object with a range and a summary in an output, and where it stands.
fn directive(output: &str) -> Option<(Fold, usize, usize)> {
    output.match_indices('{').find_map(|(start, _)| {
        let mut values = serde_json::Deserializer::from_str(&output[start..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let fold = serde_json::from_value(value).ok()?;
        Some((fold, start, start + values.byte_offset()))
    })
}
