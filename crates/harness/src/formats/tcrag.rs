//! Runs of TC-RAG (ACL 2025), replayed from raw outputs as its public code of 2024 does it.
//!
//! A line, or a document, is `{"system","question","steps":[{"output","observation"}]}`. Memory is
//! a stack of entries, one for each `Thought:`, `Action:`, `Action Input:`, `Backtrack:`,
//! `Observation:` of an output, and a prompt is the system prompt and the stack, each entry on a
//! line of its own. So entries are the harness's words for what was said: the output itself stands
//! in no later prompt.
//!
//! A `Backtrack` takes the last observation with its action, else the last thought, else the last
//! backtrack off the stack, always at the tail, and is put there itself with a request to think
//! again. The call that says it is the author. A `Final Answer` that is not the last output was
//! refused by the harness and stands as a thought.
use pleach_tree::{Origin, Part, ReadOptions, ReplacementKind, Role, Trigger};
use serde::Deserialize;

use crate::core::format::Format;
use crate::core::script::{self, Author, Call, Change, Cursor, Item, List, Script, Spot, Step};
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a run of TC-RAG is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("tc-rag", "a TC-RAG run of raw outputs", is_run, convert)
        .with_least(Shape::answers_in_steps);

const KEYWORDS: [&str; 7] =
    ["Question", "Thought", "Action", "Action Input", "Backtrack", "Observation", "Final Answer"];

/// What the harness puts behind a backtrack.
const AGAIN: &str = "请重新思考，或改写工具调用的方式和输入参数";

fn is_run(shape: &Shape) -> bool {
    let output = shape.text("steps[].output").map(str::trim_start);
    let spoken = output.is_some_and(|output| {
        KEYWORDS.iter().any(|keyword| output.starts_with(&format!("{keyword}:")))
    });
    shape.has("question") && (spoken || shape.is("harness", &["tc-rag"]))
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
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut script = Script::new("tc-rag", options);
    let file = script.draft.file(&member);
    let mut report = script.draft.report.take();
    let mut count = 0;
    member.values(options, &mut report, |run: Run, at, _| {
        count += 1;
        let conversation =
            if count == 1 { 0 } else { script.conversation_of(&format!("r{}", count - 1), "main") };
        let spot = Spot { file, at: at.clone() };
        let cursor = Cursor::new(conversation);
        Stack { cursor, spot, system: None, entries: Vec::new() }.run(&mut script, run);
    })?;
    script.draft.report.diagnostics.append(&mut report.diagnostics);
    script.play()
}

/// The stack, bottom first, and what stands below it in every prompt.
struct Stack {
    cursor: Cursor,
    spot: Spot,
    system: Option<usize>,
    entries: Vec<(usize, String)>,
}

impl Stack {
    fn run(mut self, script: &mut Script, run: Run) {
        if let Some(system) = run.system {
            let segment =
                self.spot.segment("system", script::text(Role::System, Origin::Harness, system));
            self.system = Some(self.node(script, Step::Put(vec![segment])));
        }
        self.push(script, &format!("Question:{}", run.question), "question");
        let last = run.steps.len().saturating_sub(1);
        for (index, step) in run.steps.into_iter().enumerate() {
            let key = format!("steps[{index}]");
            let output =
                self.spot.segment(key.as_str(), script::said(Part::Content, step.output.clone()));
            let call = Call {
                output: vec![output],
                model: run.model.as_deref().map(Into::into),
                dropped: true,
                ..Call::default()
            };
            let call = self.node(script, Step::Call(call));
            if index == last && step.output.contains("Final Answer:") {
                continue;
            }
            self.said(script, &step, call, &key);
        }
    }

    /// What an output does to the stack.
    fn said(&mut self, script: &mut Script, step: &RunStep, call: usize, key: &str) {
        let mut said = step.output.replace("query", "input");
        if !KEYWORDS.iter().any(|keyword| said.contains(keyword)) {
            said.insert_str(0, "Final Answer:");
        }
        let said = before_observation(&said.replace("Final Answer:", "Thought:"));
        let entries = entries(&said);
        match entries.iter().find(|entry| entry.contains("Backtrack")) {
            Some(backtrack) => self.backtrack(script, backtrack, call, key),
            None => {
                self.push(script, &said, key);
                if let Some(observation) = &step.observation {
                    let observed = observation
                        .trim_start()
                        .strip_prefix("Observation:")
                        .unwrap_or(observation);
                    self.push(
                        script,
                        &format!("Observation:{observed}"),
                        &format!("{key}.observation"),
                    );
                }
            }
        }
    }

    fn backtrack(&mut self, script: &mut Script, backtrack: &str, call: usize, key: &str) {
        let top = |stack: &Self, word: &str| {
            stack.entries.last().is_some_and(|(_, text)| text.contains(word))
        };
        let depth = self.entries.len();
        if top(self, "Observation") {
            self.entries.pop();
            for word in ["Action Input", "Action"] {
                if top(self, word) {
                    self.entries.pop();
                }
            }
        } else if top(self, "Thought") || top(self, "Backtrack") {
            self.entries.pop();
        }
        if self.entries.len() < depth {
            let items = self
                .system
                .into_iter()
                .chain(self.entries.iter().map(|(node, _)| *node))
                .map(Item::Of)
                .collect();
            let change = Change::new(ReplacementKind::None)
                .by(Author::Of(call))
                .trigger(Some(Trigger::Policy));
            let list = List { items, change };
            self.node(script, Step::List(Box::new(list)));
        }
        self.push(script, &format!("{backtrack}{AGAIN}"), key);
    }

    /// Puts the entries of a text on the stack.
    fn push(&mut self, script: &mut Script, text: &str, key: &str) {
        for entry in entries(text) {
            let observed = entry.starts_with("Observation");
            let origin = match (observed, key) {
                (true, _) => Origin::Environment,
                (false, "question") => Origin::Human,
                (false, _) => Origin::Harness,
            };
            let segment =
                self.spot.segment(key, script::text(Role::User, origin, format!("\n{entry}")));
            let node = self.node(script, Step::Put(vec![segment]));
            self.entries.push((node, entry));
        }
    }

    fn node(&mut self, script: &mut Script, step: Step) -> usize {
        self.cursor.push(script, &self.spot, step)
    }
}

/// A text that calls a tool ends before the first observation in it, which the policy made up.
fn before_observation(text: &str) -> String {
    let (action, input) = (text.find("Action:"), text.find("Action Input:"));
    match (action, input) {
        (action, Some(input)) if action.is_none_or(|action| action < input) => {
            match text.find("Observation:") {
                Some(observation) => text[..observation].to_owned(),
                None => text.trim_end().to_owned(),
            }
        }
        _ => text.to_owned(),
    }
}

/// The entries of a text: each keyword with what follows it, both without space around them.
fn entries(text: &str) -> Vec<String> {
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some((start, end)) = keyword(rest) {
        parts.extend([&rest[..start], &rest[start..end]]);
        rest = &rest[end..];
    }
    parts.push(rest);
    let parts: Vec<&str> =
        parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    parts.chunks(2).map(<[&str]>::concat).collect()
}

/// Where the next keyword with its colon stands, in any case.
fn keyword(text: &str) -> Option<(usize, usize)> {
    text.char_indices().find_map(|(start, _)| {
        KEYWORDS.iter().find_map(|keyword| {
            let head = text
                .get(start..start + keyword.len())
                .filter(|head| head.eq_ignore_ascii_case(keyword))?;
            let behind = &text[start + head.len()..];
            let colon = behind.trim_start().strip_prefix(':')?;
            Some((start, text.len() - colon.len()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_keywords_with_what_follows_them() {
        assert_eq!(
            entries("Thought: a b\nAction: find\nAction Input: {}"),
            ["Thought:a b", "Action:find", "Action Input:{}"]
        );
        assert_eq!(entries("transAction : x"), ["transAction :", "x"]);
        assert_eq!(entries("no word"), ["no word"]);
        assert_eq!(keyword("é Thought :"), Some((3, 12)));
    }

    #[test]
    fn an_observation_that_the_policy_made_up_is_cut() {
        assert_eq!(
            before_observation("Action: a\nAction Input: b\nObservation: c"),
            "Action: a\nAction Input: b\n"
        );
        assert_eq!(before_observation("Thought: Observation: c"), "Thought: Observation: c");
    }
}
