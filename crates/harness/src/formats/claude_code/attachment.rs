//! What requests show of an attachment: what its line says was sent, else the text that the harness
//! is known to make of its data.
use std::fmt::Write;

use pleach_tree::{Origin, Role};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::core::block::{Content, joined};

/// What becomes of an attachment.
#[derive(Debug, PartialEq)]
pub(super) enum Attached {
    /// It is never sent.
    Silent,
    Sent(Sent),
    /// The system prompt and the tools of every request from there on.
    Prompt(Prompt),
    /// What was sent of it is neither recorded nor known; the name of its type.
    Unknown(String),
}

/// What stands at the head of requests, as far as it is recorded.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Prompt {
    /// The list of tools, as JSON.
    pub(super) tools: Option<String>,
    pub(super) system: Vec<String>,
}

/// Text that an attachment put into requests.
#[derive(Debug, PartialEq)]
pub(super) struct Sent {
    pub(super) role: Role,
    pub(super) origin: Origin,
    pub(super) texts: Vec<String>,
    /// The type of an attachment whose line has the data only, so that the words are the harness's
    /// known ones.
    pub(super) worded: Option<String>,
}

/// One message that an attachment was sent as.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rendered {
    content: Content,
}

/// Types that are shown to the person, or kept for the harness itself, and never sent.
const SILENT: [&str; 12] = [
    "hook_system_message",
    "hook_cancelled",
    "hook_non_blocking_error",
    "hook_error_during_execution",
    "hook_permission_decision",
    "command_permissions",
    "structured_output",
    "already_read_file",
    "edited_image_file",
    "dynamic_skill",
    "autocheckpointing",
    "background_task_status",
];

/// Events whose hooks' output is sent when they succeed.
const TOLD: [&str; 2] = ["SessionStart", "UserPromptSubmit"];

/// What of an attachment requests show; `rendered` and `role` are what its line says was sent,
/// since version 2.1.260.
pub(super) fn attached(
    raw: &RawValue,
    rendered: Option<&RawValue>,
    role: Option<&str>,
) -> Attached {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let kind = field(&value, "type");
    if kind == "prompt_snapshot" {
        return prompt(&value).map_or_else(|| Attached::Unknown(kind.into()), Attached::Prompt);
    }
    if let Some(rendered) = rendered {
        return match serde_json::from_str::<Vec<Rendered>>(rendered.get()) {
            Ok(messages) => {
                let texts = messages.into_iter().map(|message| joined(message.content)).collect();
                let role = if role == Some("system") { Role::System } else { Role::User };
                sent(role, Origin::Harness, texts, None)
            }
            Err(_) => Attached::Unknown(kind.into()),
        };
    }
    let is_told = || TOLD.contains(&field(&value, "hookEvent"));
    if SILENT.contains(&kind) || kind == "hook_success" && !is_told() {
        return Attached::Silent;
    }
    if let Some(texts) = worded(kind, &value) {
        return sent(Role::User, Origin::Harness, texts, Some(kind.to_owned()));
    }
    match ["prompt", "content"].iter().find_map(|key| plain(value.get(*key)?)) {
        Some(text) => sent(Role::User, author(kind, &value), vec![text], None),
        None => Attached::Unknown(kind.into()),
    }
}

/// The system prompt and the tools, these as requests have them.
fn prompt(value: &Value) -> Option<Prompt> {
    let system = match value.get("systemPrompt") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(texts)) => texts.iter().map(plain).collect::<Option<_>>()?,
        Some(text) => vec![plain(text)?],
    };
    let tools = match value.get("tools") {
        None | Some(Value::Null) => None,
        tools => Some(tools?.as_array()?.iter().map(tool).collect::<Vec<_>>()),
    };
    let tools = tools.filter(|tools| !tools.is_empty()).map(|tools| Value::from(tools).to_string());
    (tools.is_some() || !system.is_empty()).then_some(Prompt { tools, system })
}

/// A tool whose schema is named as the API names it.
fn tool(tool: &Value) -> Value {
    let Value::Object(fields) = tool else { return tool.clone() };
    let named = fields.iter().map(|(key, value)| {
        (if key == "schema" { "input_schema" } else { key }.to_owned(), value.clone())
    });
    Value::Object(named.collect())
}

fn sent(role: Role, origin: Origin, mut texts: Vec<String>, worded: Option<String>) -> Attached {
    texts.retain(|text| !text.is_empty());
    match texts.is_empty() {
        true => Attached::Silent,
        false => Attached::Sent(Sent { role, origin, texts, worded }),
    }
}

/// Text, or a list of texts and blocks of text.
fn plain(value: &Value) -> Option<String> {
    let text = |part: &Value| match part {
        Value::String(text) => Some(text.clone()),
        part => part.get("text")?.as_str().map(str::to_owned),
    };
    match value {
        Value::Array(parts) => {
            let texts: Option<Vec<String>> = parts.iter().map(text).collect();
            texts.map(|texts| texts.join("\n"))
        }
        value => value.as_str().map(str::to_owned),
    }
}

/// Who wrote the text that stands in an attachment; what was typed while a call ran is a person's.
fn author(kind: &str, value: &Value) -> Origin {
    let typed = kind == "queued_command"
        && value.get("commandMode").is_none_or(|mode| mode == "prompt")
        && value.get("origin").is_none_or(|origin| field(origin, "kind") == "human");
    if typed { Origin::Human } else { Origin::Harness }
}

fn field<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A list of texts, each on a line of its own.
fn listed(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(plain).filter(|lines| !lines.is_empty())
}

fn reminder(text: impl AsRef<str>) -> String {
    format!("<system-reminder>\n{}\n</system-reminder>", text.as_ref())
}

/// The text of an attachment that holds data, as requests of this harness show it; none of a type
/// or a shape whose words are not known.
fn worded(kind: &str, value: &Value) -> Option<Vec<String>> {
    let name = field(value, "filename");
    let texts = match kind {
        "file" => return read(name, value),
        "edited_text_file" => {
            let changes = Some(field(value, "snippet")).filter(|snippet| !snippet.is_empty())?;
            vec![format!(
                "Note: {name} was modified, either by the user or by a linter. This change was intentional, so make sure to take it into account as you proceed (ie. don't revert it unless the user asks you to). Don't tell the user this, since they are already aware. Here are the relevant changes (shown with line numbers):\n{changes}"
            )]
        }
        "compact_file_reference" => vec![format!(
            "Note: {name} was read before the last conversation was summarized, but the contents are too large to include. Use Read tool if you need to access it."
        )],
        "opened_file_in_ide" => vec![format!(
            "The user opened the file {name} in the IDE. This may or may not be related to the current task."
        )],
        "nested_memory" => {
            let content = value.get("content")?;
            vec![format!(
                "Contents of {}:\n\n{}",
                content.get("path")?.as_str()?,
                content.get("content")?.as_str()?
            )]
        }
        "plan_file_reference" => vec![format!(
            "A plan file exists from plan mode at: {}\n\nPlan contents:\n\n{}\n\nIf this plan is relevant to the current work and not already complete, continue working on it.",
            field(value, "planFilePath"),
            value.get("planContent")?.as_str()?
        )],
        "invoked_skills" => vec![skills(value)?],
        "task_reminder" | "todo_reminder" => vec![tasks(kind, value)?],
        "deferred_tools_delta" | "agent_listing_delta" => vec![delta(kind, value)?],
        "date_change" => vec![format!(
            "The date has changed. Today's date is now {}. DO NOT mention this to the user explicitly because they are already aware.",
            value.get("newDate")?.as_str()?
        )],
        _ => hook(kind, value)?,
    };
    Some(texts.into_iter().filter(|text| !text.is_empty()).map(reminder).collect())
}

/// What a hook told the model.
fn hook(kind: &str, value: &Value) -> Option<Vec<String>> {
    let name = field(value, "hookName");
    Some(match kind {
        "async_hook_response" => {
            let response = value.get("response")?;
            let context = response
                .get("hookSpecificOutput")
                .map_or("", |output| field(output, "additionalContext"));
            vec![field(response, "systemMessage").to_owned(), context.to_owned()]
        }
        "hook_blocking_error" => {
            let error = value.get("blockingError")?;
            vec![format!(
                "{} hook blocking error from command: \"{}\": {}",
                name,
                field(error, "command"),
                error.get("blockingError")?.as_str()?
            )]
        }
        "hook_stopped_continuation" => {
            vec![format!("{} hook stopped continuation: {}", name, value.get("message")?.as_str()?)]
        }
        _ => return None,
    })
}

/// A file that a prompt names is shown as a call of the tool that reads it, and its result.
fn read(name: &str, value: &Value) -> Option<Vec<String>> {
    let content = value.get("content")?;
    let file = content.get("file").filter(|_| field(content, "type") == "text")?;
    let first = file.get("startLine").and_then(Value::as_u64).unwrap_or(1);
    let mut lines = String::new();
    for (at, line) in (0_u64..).zip(file.get("content")?.as_str()?.split('\n')) {
        let number = first.saturating_add(at);
        let end = if at == 0 { "" } else { "\n" };
        // Writing to a string does not fail.
        write!(lines, "{end}{number:>6}→{line}").ok()?;
    }
    let call = Value::from(name);
    let mut texts = vec![
        reminder(format!(
            r#"Called the Read tool with the following input: {{"file_path":{call}}}"#
        )),
        reminder(format!("Result of calling the Read tool:\n{lines}")),
    ];
    if value.get("truncated") == Some(&Value::Bool(true)) {
        texts.push(reminder(format!(
            "Note: The file {name} was too large and has been truncated to the first 2000 lines. Don't tell the user about this truncation. Use Read to read more of the file if you need."
        )));
    }
    Some(texts)
}

fn skills(value: &Value) -> Option<String> {
    let skill = |skill: &Value| {
        Some(format!(
            "### Skill: {}\nPath: {}\n\n{}",
            skill.get("name")?.as_str()?,
            field(skill, "path"),
            skill.get("content")?.as_str()?
        ))
    };
    let skills: Option<Vec<String>> = value.get("skills")?.as_array()?.iter().map(skill).collect();
    let skills = skills.filter(|skills| !skills.is_empty())?.join("\n\n---\n\n");
    Some(format!(
        "The following skills were invoked in this session. Continue to follow these guidelines:\n\n{skills}"
    ))
}

fn tasks(kind: &str, value: &Value) -> Option<String> {
    let items = value.get("content")?.as_array()?;
    let listed: Vec<String> = items
        .iter()
        .zip(1..)
        .map(|(item, number)| match kind {
            "todo_reminder" => {
                format!("{number}. [{}] {}", field(item, "status"), field(item, "content"))
            }
            _ => format!(
                "#{}. [{}] {}",
                item.get("id").map(shown).unwrap_or_default(),
                field(item, "status"),
                field(item, "subject")
            ),
        })
        .collect();
    let mut text = String::from(match kind {
        "todo_reminder" => {
            "The TodoWrite tool hasn't been used recently. If you're working on tasks that would benefit from tracking progress, consider using the TodoWrite tool to track progress. Also consider cleaning up the todo list if has become stale and no longer matches what you are working on. Only use it if it's relevant to the current work. This is just a gentle reminder - ignore if not applicable. Make sure that you NEVER mention this reminder to the user\n"
        }
        _ => {
            "The task tools haven't been used recently. If you're working on tasks that would benefit from tracking progress, consider using TaskCreate to add new tasks and TaskUpdate to update task status (set to in_progress when starting, completed when done). Also consider cleaning up the task list if it has become stale. Only use these if relevant to the current work. This is just a gentle reminder - ignore if not applicable. Make sure that you NEVER mention this reminder to the user\n"
        }
    });
    match (kind, listed.is_empty()) {
        (_, true) => {}
        ("todo_reminder", false) => {
            text += "\n\nHere are the existing contents of your todo list:\n\n[";
            text += &listed.join("\n");
            text += "]";
        }
        (_, false) => {
            text += "\n\nHere are the existing tasks:\n\n";
            text += &listed.join("\n");
        }
    }
    Some(text)
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Tools and agents that came and went.
fn delta(kind: &str, value: &Value) -> Option<String> {
    let initial = value.get("isInitial") == Some(&Value::Bool(true));
    let (came, went, gone) = match (kind, initial) {
        ("deferred_tools_delta", _) => (
            "The following deferred tools are now available via ToolSearch:",
            "The following deferred tools are no longer available (their MCP server disconnected). Do not search for them — ToolSearch will return no match:",
            listed(value, "removedNames"),
        ),
        (_, initial) => {
            let types = listed(value, "removedTypes");
            let dashed = types
                .map(|types| types.split('\n').map(|name| format!("- {name}")).collect::<Vec<_>>());
            (
                match initial {
                    true => "Available agent types for the Agent tool:",
                    false => "New agent types are now available for the Agent tool:",
                },
                "The following agent types are no longer available:",
                dashed.map(|types| types.join("\n")),
            )
        }
    };
    let parts: Vec<String> = [(came, listed(value, "addedLines")), (went, gone)]
        .into_iter()
        .filter_map(|(head, lines)| Some(format!("{head}\n{}", lines?)))
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Attached {
        attached(&RawValue::from_string(json.into()).unwrap(), None, None)
    }

    fn texts(json: &str) -> Vec<String> {
        match of(json) {
            Attached::Sent(sent) => sent.texts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_attachment_is_its_text_where_it_has_one() {
        assert_eq!(texts(r#"{"type":"queued_command","prompt":"go on"}"#), ["go on"]);
        assert_eq!(
            texts(r#"{"type":"hook","content":["a",{"type":"text","text":"b"}]}"#),
            ["a\nb"]
        );
        assert_eq!(of(r#"{"type":"skill_listing","content":""}"#), Attached::Silent);
        assert_eq!(of(r#"{"type":"orchard","trees":[1]}"#), Attached::Unknown("orchard".into()));
    }

    #[test]
    fn data_is_worded_as_the_harness_does() {
        assert_eq!(
            texts(
                r#"{"type":"file","filename":"/w/a","content":{"type":"text","file":{"content":"x\ny","startLine":9}}}"#
            ),
            [
                "<system-reminder>\nCalled the Read tool with the following input: {\"file_path\":\"/w/a\"}\n</system-reminder>",
                "<system-reminder>\nResult of calling the Read tool:\n     9→x\n    10→y\n</system-reminder>"
            ]
        );
        let edited =
            texts(r#"{"type":"edited_text_file","filename":"/w/a","snippet":"1\tx"}"#).concat();
        assert!(edited.starts_with("<system-reminder>\nNote: /w/a was modified,"), "{edited}");
        assert!(edited.ends_with(":\n1\tx\n</system-reminder>"), "{edited}");
        let tasks = texts(
            r#"{"type":"task_reminder","content":[{"id":"3","status":"pending","subject":"dig"}]}"#,
        );
        assert!(
            tasks.concat().ends_with("existing tasks:\n\n#3. [pending] dig\n</system-reminder>")
        );
        let response =
            r#"{"systemMessage":"one","hookSpecificOutput":{"additionalContext":"two"}}"#;
        assert_eq!(
            texts(&format!(r#"{{"type":"async_hook_response","response":{response}}}"#)),
            ["one", "two"].map(reminder)
        );
        let tools =
            texts(r#"{"type":"deferred_tools_delta","addedLines":["A","B"],"removedNames":["C"]}"#);
        assert!(tools.concat().contains("ToolSearch:\nA\nB\n\nThe following"), "{tools:?}");
    }

    #[test]
    fn data_of_another_shape_is_not_guessed() {
        for json in [
            r#"{"type":"file","filename":"/w/a","content":{"type":"pdf"}}"#,
            r#"{"type":"edited_text_file","filename":"/w/a"}"#,
            r#"{"type":"task_reminder","content":7}"#,
            r#"{"type":"deferred_tools_delta"}"#,
        ] {
            assert!(matches!(of(json), Attached::Unknown(_)), "{json}");
        }
    }
}
