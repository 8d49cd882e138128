//! The files of a log.
use std::sync::Arc;

use pleach_tree::ReadOptions;
use serde::Deserialize;

use super::event::Event;
use super::log::Log;
use crate::core::format::Format;
use crate::core::input::Member;
use crate::core::script::{Script, Spot};
use crate::core::shape;
use crate::core::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a log of OpenHands is told from other files.
pub(crate) const FORMAT: Format =
    Format::new("openhands", "an OpenHands event log", is_event, convert)
        .with_folder(is_conversation);

const KINDS: [&str; 9] = [
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "UserRejectObservation",
    "AgentErrorEvent",
    "Condensation",
    "CondensationRequest",
    "ConversationStateUpdateEvent",
];

fn is_event(shape: &Shape) -> bool {
    shape.is("kind", &KINDS) && shape.has_all(&["id", "timestamp", "source"])
}

fn is_conversation(input: &Input) -> Result<bool, HarnessError> {
    // One that is damaged or longer than what is looked at says nothing of the others.
    for member in event_files(input)?.iter().take(4) {
        if shape::is_of(member, is_event)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The files of events in the order of their numbers, of a conversation's folder or of its `events`;
/// those further down are other conversations'.
fn event_files(input: &Input) -> Result<Vec<Member>, HarnessError> {
    let mut members = input.members()?;
    let own = |listed: &str| !listed.strip_prefix("events/").unwrap_or(listed).contains('/');
    members.retain(|member| member.file_name().starts_with("event-") && own(&member.listed));
    members.sort_by_key(number);
    Ok(members)
}

fn number(member: &Member) -> Option<u64> {
    member.file_name().strip_prefix("event-")?.split(['-', '.']).next()?.parse().ok()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BaseState {
    agent: Agent,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Agent {
    llm: Llm,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Llm {
    model: Option<String>,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut script = Script::new("openhands", options);
    let mut log = Log::default();
    if input.is_folder() {
        folder(input, &mut script, &mut log)?;
    } else {
        script.lines(&input.main(), |script, event: Event, spot| log.take(script, event, spot))?;
    }
    log.close(&mut script);
    script.play()
}

fn folder(input: &Input, script: &mut Script, log: &mut Log) -> Result<(), HarnessError> {
    let options = script.draft.options;
    if let Some(state) =
        input.members()?.iter().find(|member| member.file_name() == "base_state.json")
    {
        let (states, _) = state.document::<BaseState>(options, &mut script.draft.report)?;
        log.model =
            states.into_iter().next().and_then(|state| state.agent.llm.model).map(Arc::from);
    }
    let mut last = None;
    for member in event_files(input)? {
        let file = script.draft.file(&member);
        let (events, at) = member.document::<Event>(options, &mut script.draft.report)?;
        let spot = Spot { file, at };
        if let Some(number) = number(&member).filter(|&number| last == Some(number)) {
            let message = format!(
                "another file has number {number} too; both are taken, in the order of their names"
            );
            script.draft.fault(&spot.at, "", "duplicate-ordinal", message);
        }
        last = number(&member);
        for event in events {
            log.take(script, event, &spot);
        }
    }
    Ok(())
}
