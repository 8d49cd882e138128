//! Where a run hands itself off: Terminus 2 has one sub-agent summarise, one ask questions of that
//! summary, and one answer them, and then goes on with the questions and the answers.
use pleach_tree::{By, ByKind, Origin, Part as SegmentPart, ReplacementKind, Segment};
use serde_json::Value;

use super::model::TrajectoryStep;
use super::steps::{Steps, Thread, said};
use crate::core::script::{self, Author, Change, Item, List, Script, Spot, Step};
use crate::core::wording;

/// A trajectory that a step refers to.
#[derive(Debug)]
pub(super) struct Reference {
    /// The file that it lies in.
    pub(super) path: Option<String>,
    pub(super) ids: Vec<String>,
}

/// The trajectories that a step's observation refers to.
pub(super) fn referred(step: &TrajectoryStep) -> Vec<Reference> {
    let results = step.observation.iter().flat_map(|observation| &observation.results);
    let references = results.filter_map(|result| result.subagent_trajectory_ref.as_ref());
    let each = references.flat_map(|reference| match reference {
        Value::Array(items) => items.clone(),
        item => vec![item.clone()],
    });
    let text = |item: &Value, key: &str| item.get(key)?.as_str().map(str::to_owned);
    each.map(|item| Reference {
        path: text(&item, "trajectory_path"),
        ids: ["trajectory_id", "session_id"].iter().filter_map(|key| text(&item, key)).collect(),
    })
    .collect()
}

/// What a sub-agent of a handoff does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Summary,
    Questions,
    Answers,
}

impl Reference {
    fn task(&self) -> Option<Task> {
        let name = self.path.as_deref().or(self.ids.first().map(String::as_str))?;
        let (_, task) = name.trim_end_matches(".json").rsplit_once("summarization-")?;
        match task.rsplit('-').next()? {
            "summary" => Some(Task::Summary),
            "questions" => Some(Task::Questions),
            "answers" => Some(Task::Answers),
            _ => None,
        }
    }
}

/// The sub-agents of a step that hands off.
pub(super) fn of(step: &TrajectoryStep) -> Option<Vec<Reference>> {
    let references = referred(step);
    let hands_off = step.source == "system"
        && step.boundary().is_none()
        && references.iter().any(|reference| reference.task().is_some());
    hands_off.then_some(references)
}

/// What sub-agents of a handoff did, as far as they are there.
#[derive(Default)]
struct Handoff {
    summary: Option<Thread>,
    questions: Option<Thread>,
    answers: Option<Thread>,
}

impl Steps {
    /// Plays the sub-agents of a handoff, and puts the list that the run goes on with; `next` is the
    /// step behind it, which tells the answers.
    pub(super) fn handoff(
        &mut self,
        script: &mut Script,
        references: &[Reference],
        next: Option<&TrajectoryStep>,
        spot: &Spot,
        key: &str,
    ) {
        let mut handoff = Handoff::default();
        for reference in references {
            let Some(thread) = self.sub_agent(script, reference) else { continue };
            match reference.task() {
                Some(Task::Summary) => handoff.summary = Some(thread),
                Some(Task::Questions) => handoff.questions = Some(thread),
                Some(Task::Answers) => handoff.answers = Some(thread),
                None => {}
            }
        }
        let asked = handoff.questions.iter().flat_map(|thread| &thread.path);
        let mut items: Vec<Item> =
            self.thread.opening.iter().chain(asked).map(|&node| Item::Of(node)).collect();
        for segment in next.into_iter().flat_map(|step| said(step, spot, key)) {
            let segment = Segment { origin: Origin::Harness, ..segment };
            let call = handoff.answers.as_ref().and_then(|thread| thread.call);
            let quoted = call.and_then(|call| quoted(script, call, &segment));
            items.extend(quoted.unwrap_or_else(|| vec![Item::New(vec![segment])]));
        }
        let author = match handoff.summary.and_then(|thread| thread.call) {
            Some(call) => Author::Of(call),
            None => Author::Known(By::new(ByKind::Unknown)),
        };
        let change = Change::new(ReplacementKind::Summary).by(author);
        let list = Step::List(Box::new(List { items, change }));
        self.push(script, spot, list, false);
    }
}

/// A message as the words of the call that it tells and those around them.
fn quoted(script: &Script, call: usize, segment: &Segment) -> Option<Vec<Item>> {
    let Step::Call(said) = &script.nodes[call].step else { return None };
    let part = said.output.iter().rposition(|said| said.part == Some(SegmentPart::Content))?;
    let words = said.output[part].text.as_deref()?.trim();
    let told = segment.text.as_deref()?;
    let sure = words.len() >= wording::SHORTEST_QUOTE || told.trim_end().ends_with(words);
    script::quoting(segment, words, Item::Part(call, part)).filter(|_| sure)
}
