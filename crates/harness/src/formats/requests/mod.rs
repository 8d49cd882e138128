//! Logs of requests and responses as a proxy sees them, whatever harness sent them.
//!
//! Read: OpenAI chat completions and responses, Anthropic messages, bodies or streams, as of
//! November 2026. A line is `{"request":BODY,"response":BODY}`, bodies also under `body`, as
//! strings, or as the chunks of a stream; or the request's own fields beside `response`. A
//! `session_id`, `conversation_id` or `rollout_id` beside them is a rollout.
//!
//! # What a log becomes
//! - Every answer is a generation; its context is exactly the request: tools, system prompt,
//!   messages, part by part, tool calls as `{"id","name","input"}`. A `previous_response_id` stands
//!   for all that it was given and said.
//! - What left between two requests is found by comparing them, so it is `inferred`: see
//!   [`crate::core::prompts`]. A summary has the call as its author whose words it quotes, and that call
//!   is a thread of its own.
//! - Requests that share nothing with an earlier one start a thread. A request that failed, or has
//!   no answer, is no call.
//! - Reasoning that a provider words anew (Anthropic's thinking, summaries of the responses API) is
//!   an external model's and carries no loss; `reasoning_content`, which engines take from the
//!   sampled tokens, is the policy's.
mod anthropic;
mod body;
pub(crate) mod chat;
pub(crate) mod parts;
pub(crate) mod responses;
mod stream;

use std::sync::Arc;

use pleach_tree::{Extra, Fidelity, Location, Origin, Part, ReadOptions, Segment, Source};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use crate::core::draft::Draft;
use crate::core::format::Format;
use crate::core::prompts::{Call, Lineage, Messages, Prompts, Said};
use crate::core::script::Spot;
use crate::core::shape::{Kind, Shape};
use crate::{Conversion, HarnessError, Input};
use body::Exchange;

/// How such logs are told from other files.
pub(crate) const FORMAT: Format =
    Format::new("requests", "a log of requests to an OpenAI or Anthropic API", is_log, convert);

fn is_log(shape: &Shape) -> bool {
    ["", "[]."].into_iter().any(|at| {
        let key = |key: &str| format!("{at}{key}");
        let list = |path: &str| shape.kind(&key(path)) == Some(Kind::List);
        let has = |path: &str| shape.has(&key(path));
        let body = |of: &str| list(&format!("{of}.messages")) || has(&format!("{of}.input"));
        let packed = || shape.text(&key("request.body")).is_some_and(|text| text.starts_with('{'));
        let own = || list("messages") || has("input") && has("model");
        (has("response") || has("error"))
            && (body("request") || body("request.body") || packed() || own())
    })
}

/// What a body of an API says, in one form for all of them.
#[derive(Debug, Default)]
struct Turns {
    /// The request's parts, in order.
    given: Vec<Segment>,
    /// The answers, most often one.
    said: Vec<Vec<Segment>>,
    /// The answer that the request goes on from, where it does not say all of it again.
    behind: Option<String>,
    /// Whether the answer holds reasoning that is not recorded.
    hides_reasoning: bool,
}

/// What an answer of the responses API was given and said, behind the answer before it.
struct Answer {
    behind: Option<String>,
    units: Vec<u32>,
}

struct Log {
    draft: Draft,
    prompts: Prompts<Messages>,
    answers: FxHashMap<String, Answer>,
    file: u32,
    calls: usize,
    /// Parts of messages that are no text, and where a request was seen first.
    media: FxHashMap<u64, String>,
    with_media: Option<Location>,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let member = input.main();
    let mut draft = Draft::new("requests", Fidelity::Inferred, options);
    let file = draft.file(&member);
    let mut log = Log {
        draft,
        prompts: Prompts::default(),
        answers: FxHashMap::default(),
        file,
        calls: 0,
        media: FxHashMap::default(),
        with_media: None,
    };
    let mut report = log.draft.report.take();
    member.values(options, &mut report, |value, at, _| log.value(value, at))?;
    log.draft.report.diagnostics.append(&mut report.diagnostics);
    log.tell_media();
    let Log { mut draft, prompts, .. } = log;
    prompts.finish(&mut draft);
    draft.finish()
}

impl Log {
    /// Says how many parts of messages are no text, of which nothing but a note stands in contexts.
    fn tell_media(&mut self) {
        let Some(at) = self.with_media.take().filter(|_| !self.media.is_empty()) else { return };
        self.draft.warn(&at, "request", "no-text", parts::media_note(&self.media));
    }

    fn value(&mut self, value: Value, at: &Location) {
        match value {
            Value::Array(values) => values.into_iter().for_each(|value| self.value(value, at)),
            Value::Object(fields) => self.exchange(fields, at),
            _ => {
                self.draft.fault(
                    at,
                    "",
                    "no-exchange",
                    "the value is no request and response; it is left out",
                );
            }
        }
    }

    fn exchange(&mut self, fields: Map<String, Value>, at: &Location) {
        let exchange = match Exchange::of(fields) {
            Ok(exchange) => exchange,
            Err(body::Flaw::NoRequest) => {
                self.draft.fault(
                    at,
                    "request",
                    "no-request",
                    "the line holds no request of a known API; it is left out",
                );
                return;
            }
            Err(body::Flaw::Failed(why)) => {
                self.draft.warn(
                    at,
                    "response",
                    "failed-call",
                    format!("the request has no answer ({why}); it is no call"),
                );
                return;
            }
        };
        let turns = match exchange.api() {
            body::Api::Chat => chat::turns(&exchange),
            body::Api::Anthropic => anthropic::turns(&exchange),
            body::Api::Responses => responses::turns(&exchange),
        };
        let says = |said: &Vec<Segment>| said.iter().any(parts::by_model);
        if !turns.said.iter().any(says) {
            self.draft.warn(
                at,
                "response",
                "failed-call",
                "the answer says nothing; it is no call",
            );
            return;
        }
        self.calls(&exchange, turns, at);
    }

    fn calls(&mut self, exchange: &Exchange, mut turns: Turns, at: &Location) {
        let mut prompt = self.behind(turns.behind.as_deref(), at);
        for content in ["messages", "input"].iter().filter_map(|key| exchange.request.get(*key)) {
            parts::media(content, &mut self.media);
        }
        if !self.media.is_empty() {
            self.with_media.get_or_insert_with(|| at.clone());
        }
        let request = exchange.id().unwrap_or_else(|| format!("call-{}", self.calls + 1));
        for source in turns.given.iter_mut().filter_map(|segment| segment.source.as_mut()) {
            let key = format!("{request}#{}", source.key);
            *source = Source { file: self.file, line: at.line, key };
        }
        prompt.extend(turns.given.iter().map(|segment| self.prompts.units.unit(segment)));
        let model: Option<Arc<str>> = exchange.model().map(Into::into);
        let id = exchange.id();
        let says = |(_, said): &(usize, Vec<Segment>)| said.iter().any(parts::by_model);
        for (choice, said) in turns.said.into_iter().enumerate().filter(says) {
            self.calls += 1;
            let reasons = said
                .iter()
                .any(|part| part.part == Some(Part::Reasoning) && part.origin != Origin::Policy);
            let mut units = |segment: Segment| {
                let unit = self.prompts.units.unit(&segment);
                Said { segment, units: vec![unit] }
            };
            let said: Vec<Said> = said.into_iter().map(&mut units).collect();
            let key = match (&id, choice) {
                (Some(id), 0) => id.clone(),
                (Some(id), choice) => format!("{id}#{choice}"),
                (None, _) => format!("call-{}", self.calls),
            };
            let referable = choice == 0 && exchange.api() == body::Api::Responses;
            if let Some(id) = id.as_ref().filter(|_| referable) {
                let kept = turns.given.iter().map(|segment| self.prompts.units.unit(segment));
                let units =
                    kept.chain(said.iter().flat_map(|said| said.units.iter().copied())).collect();
                self.answers.insert(id.clone(), Answer { behind: turns.behind.clone(), units });
            }
            let call = Call {
                rollout: exchange.rollout().unwrap_or_else(|| "r0".into()),
                thread: None,
                prompt: prompt.clone(),
                said,
                model: model.clone(),
                unrecorded: if reasons || turns.hides_reasoning {
                    vec!["reasoning".into()]
                } else {
                    Vec::new()
                },
                spot: Spot { file: self.file, at: at.clone() },
                key,
                extra: Extra::new(),
                lineage: Lineage::default(),
            };
            self.prompts.push(&mut self.draft, call);
        }
    }

    /// All that was given and said up to an answer.
    fn behind(&mut self, id: Option<&str>, at: &Location) -> Vec<u32> {
        let (mut chain, mut next) = (Vec::new(), id);
        while let Some(id) = next {
            let Some(answer) = self.answers.get(id) else {
                let message = format!(
                    "the answer {id} that the request goes on from is not in the log; nothing is taken to stand before it"
                );
                self.draft.fault(at, "request.previous_response_id", "missing-answer", message);
                break;
            };
            chain.push(&answer.units);
            next = answer.behind.as_deref().filter(|_| chain.len() <= self.answers.len());
        }
        chain.into_iter().rev().flatten().copied().collect()
    }
}
