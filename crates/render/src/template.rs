use std::ops::Range;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Value};
use sha2::{Digest, Sha256};

use super::{RenderError, mark, python};

const NAME: &str = "chat template";
/// The filter that marks a trainer's span.
const TRAINED: &str = "trained_span";
const CHATML: &str = include_str!("chatml.jinja");

/// A chat template, run as Hugging Face runs it.
///
/// Block tags swallow their line, Python's string methods and `tojson` work, and `raise_exception`,
/// `strftime_now`, `break` and `continue` exist, so that a published template renders here what it
/// renders there.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    /// What messages call it.
    name: String,
    sha256: String,
    dated: bool,
    /// Whether it says which of its characters are trained.
    marks_spans: bool,
    takes_tools: bool,
    literals: Vec<String>,
}

impl ChatTemplate {
    /// The built-in ChatML template: every part of every message, nothing dropped or trimmed.
    pub fn chatml() -> Self {
        match Self::new(CHATML, &[], "built-in ChatML") {
            Ok(template) => template,
            Err(error) => unreachable!("{error}"),
        }
    }

    /// Compiles a template; `special` are names such as `bos_token` with their texts, `file` is
    /// what errors call it.
    ///
    /// # Errors
    /// [`RenderError::Template`] where it does not compile.
    pub fn new(
        source: &str,
        special: &[(String, String)],
        file: &str,
    ) -> Result<Self, RenderError> {
        let sha256 = hex(&Sha256::digest(source.as_bytes()));
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| RenderError::Template {
            file: file.into(),
            message: describe(&error),
        })?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(python::method);
        environment.set_formatter(python::print);
        environment.add_test("iterable", |value: &Value| python::is_iterable(value));
        environment.add_test("sequence", |value: &Value| python::is_sequence(value));
        environment.add_test("mapping", |value: &Value| python::is_mapping(value));
        environment.add_test("callable", |value: &Value| python::is_callable(value));
        environment.add_filter("string", python::string);
        environment.add_filter("tojson", python::tojson);
        environment.add_filter(TRAINED, |text: &str| Value::from_safe_string(mark::trained(text)));
        environment.add_function("raise_exception", python::raise_exception);
        environment.add_global("documents", Value::from(()));
        for (name, text) in special {
            environment.add_global(name.clone(), Value::from(text.as_str()));
        }
        // Jinja2 reads every end of a line as one line feed.
        let source = &source.replace("\r\n", "\n").replace('\r', "\n");
        let spanned = with_trained_spans(source);
        let marks_spans = spanned != *source;
        environment.add_template_owned(NAME, spanned).map_err(|error| RenderError::Template {
            file: file.into(),
            message: describe(&error),
        })?;
        let dated = source.contains("strftime_now");
        let takes_tools = source.contains("tools");
        let mut template = Self {
            environment,
            name: file.into(),
            sha256,
            dated,
            marks_spans,
            takes_tools,
            literals: literals(source),
        };
        template.set_date(jiff::Timestamp::now().to_zoned_datetime(jiff::tz::TimeZone::UTC).date());
        Ok(template)
    }

    /// What messages call it: the file, or `built-in ChatML`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Digest of the source, in hex.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Whether what it renders can depend on the day.
    pub fn is_dated(&self) -> bool {
        self.dated
    }

    /// Whether the template has a place of its own for the definitions of tools.
    pub(super) fn takes_tools(&self) -> bool {
        self.takes_tools
    }

    /// Strings that the template may look for in what it is given.
    pub(super) fn literals(&self) -> &[String] {
        &self.literals
    }

    /// Renders messages, each an object of `role`, `content` and the rest, as the prompt of a call
    /// or as a conversation.
    ///
    /// # Errors
    /// [`RenderError::Template`] where the template raises an exception.
    pub fn render(
        &self,
        messages: &[serde_json::Value],
        add_generation_prompt: bool,
    ) -> Result<String, RenderError> {
        self.render_with_tools(messages, None, add_generation_prompt)
    }

    /// The same with the definitions of tools, as requests hold them.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn render_with_tools(
        &self,
        messages: &[serde_json::Value],
        tools: Option<&[serde_json::Value]>,
        add_generation_prompt: bool,
    ) -> Result<String, RenderError> {
        let messages = messages.iter().map(super::call::plain).collect();
        let tools = tools.map(|tools| tools.iter().map(super::call::plain).collect());
        self.apply(messages, tools, add_generation_prompt)
            .map(|applied| applied.text)
            .map_err(|message| RenderError::Template { file: NAME.into(), message })
    }

    /// Makes the template see `date` as today.
    pub(super) fn set_date(&mut self, date: jiff::civil::Date) {
        self.environment
            .add_function("strftime_now", move |format: Arc<str>| python::strftime(date, &format));
    }

    /// Renders message values; the error is what the template says.
    pub(super) fn apply(
        &self,
        messages: Vec<Value>,
        tools: Option<Value>,
        add_generation_prompt: bool,
    ) -> Result<Applied, String> {
        let tools = tools.unwrap_or(Value::from(()));
        let context = minijinja::context! { messages, tools, add_generation_prompt };
        let template = self.environment.get_template(NAME).map_err(|error| describe(&error))?;
        let text = template.render(context).map_err(|error| describe(&error))?;
        if !self.marks_spans {
            return Ok(Applied { text, trained: Vec::new() });
        }
        let (text, trained) = mark::trained_spans(&text);
        Ok(Applied { text, trained })
    }
}

/// What a template makes of messages.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) text: String,
    /// The bytes between `{% generation %}` and its end, where the template has such tags.
    pub(super) trained: Vec<Range<usize>>,
}

/// Turns the tags of a trainer's spans, which only Hugging Face knows, into a filter that marks
/// what stands between them.
fn with_trained_spans(source: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(start) = rest.find("{%") {
        let Some(end) = rest[start..].find("%}").map(|end| start + end) else { break };
        let tag = &rest[start + 2..end];
        let name = tag.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        out.push_str(&rest[..start + 2]);
        out.push_str(&match name {
            "generation" => tag.replacen(name, &format!("filter {TRAINED}"), 1),
            "endgeneration" => tag.replacen(name, "endfilter", 1),
            _ => tag.to_owned(),
        });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The quoted strings of a template that hold more than words.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find(['\'', '"']) {
        let quote = &rest[start..=start];
        let text = &rest[start + 1..];
        let Some(end) = text.find(quote) else { break };
        let literal = text[..end].replace("\\n", "\n");
        let literal = literal.trim();
        if literal.len() > 2 && literal.contains(|c: char| c.is_ascii_punctuation() && c != '_') {
            found.push(literal.to_owned());
        }
        rest = &text[end + 1..];
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn describe(error: &minijinja::Error) -> String {
    let said = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{said} (line {line} of the template)"),
        None => said,
    }
}

/// Bytes in hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
