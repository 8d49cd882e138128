//! The files of a session: an export, or the records of a storage folder.
use pleach_tree::ReadOptions;

use super::record::{Export, Info, Part, Session, WithParts};
use super::session;
use crate::detect::{self, Format};
use crate::input::Member;
use crate::script::{Script, Spot};
use crate::shape::Shape;
use crate::{Conversion, HarnessError, Input};

/// How a session of OpenCode is told from other files.
pub(crate) const FORMAT: Format = Format::new("opencode", "an OpenCode session", is_session, convert).with_folder(is_storage);

fn is_session(shape: &Shape) -> bool {
    is_export(shape) || is_record(shape)
}

fn is_export(shape: &Shape) -> bool {
    shape.has("info.id") && shape.kind("messages").is_some() && (shape.has("info.projectID") || shape.has("messages[].info"))
}

fn is_record(shape: &Shape) -> bool {
    shape.has_all(&["id", "projectID", "time"]) && !shape.has("sessionID")
}

fn is_storage(input: &Input) -> Result<bool, HarnessError> {
    let sessions = session_files(&input.members()?);
    match sessions.first() {
        Some(member) => detect::is_of(member, is_record),
        None => Ok(false),
    }
}

fn session_files(members: &[Member]) -> Vec<Member> {
    let folder = |listed: &str| listed.split('/').rev().nth(2).map(str::to_owned);
    members.iter().filter(|member| folder(&member.listed).as_deref() == Some("session")).cloned().collect()
}

/// A session, its messages, each with the place where it was read.
pub(super) struct Loaded {
    pub(super) session: Session,
    pub(super) spot: Spot,
    pub(super) messages: Vec<(WithParts, Spot)>,
}

fn convert(input: &Input, options: ReadOptions) -> Result<Conversion, HarnessError> {
    let mut script = Script::new("opencode", options);
    if input.is_folder() {
        let members = input.members()?;
        let mut sessions = Vec::new();
        for member in session_files(&members) {
            sessions.extend(read_session(&mut script, &member, &members)?);
        }
        sessions.sort_by(|a, b| a.session.id.cmp(&b.session.id));
        let (mut roots, children): (Vec<Loaded>, Vec<Loaded>) =
            sessions.into_iter().partition(|loaded| loaded.session.parent.is_none());
        // Without a session that has no parent, the folder holds a sub-agent alone.
        let mut children = children.into_iter();
        let main = match (roots.len(), roots.pop().or_else(|| children.next())) {
            (0 | 1, Some(main)) => main,
            _ => return Err(HarnessError::Folder { file: input.name().to_string() }),
        };
        return play(script, main, children.collect());
    }
    let main = input.main();
    let exported = detect::is_of(&main, is_export)?;
    if !exported {
        let name = |folder: &str| format!("../../{folder}");
        let id = main.file_name().trim_end_matches(".json").to_owned();
        let mut members = input.beside(&name(&format!("message/{id}")))?;
        for member in members.clone() {
            members.extend(input.beside(&name(&format!("part/{}", member.file_name().trim_end_matches(".json"))))?);
        }
        let Some(loaded) = read_session(&mut script, &main, &members)? else { return script.play() };
        return play(script, loaded, Vec::new());
    }
    let file = script.draft.file(&main);
    let (documents, at) = main.document::<Export>(options, &mut script.draft.report)?;
    let spot = Spot { file, at };
    let Some(export) = documents.into_iter().next() else { return script.play() };
    let messages = export.messages.into_iter().map(|message| (message, spot.clone())).collect();
    play(script, Loaded { session: export.info, spot, messages }, Vec::new())
}

fn play(mut script: Script, main: Loaded, children: Vec<Loaded>) -> Result<Conversion, HarnessError> {
    script.draft.header.harness_version.clone_from(&main.session.version);
    session::write(&mut script, main, 0);
    for child in children {
        let conversation = script.conversation(child.session.id.clone());
        session::write(&mut script, child, conversation);
    }
    script.play()
}

/// One file of a storage folder.
fn record<T: serde::de::DeserializeOwned>(script: &mut Script, member: &Member) -> Result<Option<(T, Spot)>, HarnessError> {
    let file = script.draft.file(member);
    let options = script.draft.options;
    let (records, at) = member.document::<T>(options, &mut script.draft.report)?;
    Ok(records.into_iter().next().map(|record| (record, Spot { file, at })))
}

/// A session and its messages out of the files of a storage folder, in the order of their ids.
fn read_session(script: &mut Script, member: &Member, members: &[Member]) -> Result<Option<Loaded>, HarnessError> {
    let Some((session, spot)) = record::<Session>(script, member)? else { return Ok(None) };
    let inside = |folder: &str, id: &str| -> Vec<&Member> {
        let at = |listed: &str| {
            let mut names = listed.split('/').rev().skip(1);
            names.next() == Some(id) && names.next() == Some(folder)
        };
        let mut found: Vec<&Member> = members.iter().filter(|member| at(&member.listed)).collect();
        found.sort_by(|a, b| a.file_name().cmp(b.file_name()));
        found
    };
    let mut messages = Vec::new();
    for member in inside("message", &session.id) {
        let Some((info, spot)) = record::<Info>(script, member)? else { continue };
        let mut parts = Vec::new();
        for member in inside("part", &info.id) {
            parts.extend(record::<Part>(script, member)?.map(|(part, _)| part));
        }
        messages.push((WithParts { info, parts }, spot));
    }
    Ok(Some(Loaded { session, spot, messages }))
}
