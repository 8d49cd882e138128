//! A chat template over conversations, a JSON object a line on standard input, a JSON text or
//! error a line on standard output: what `tools/compare_templates.py` compares with Jinja2.
//!
//! ```sh
//! cargo run -p pleach-render --example render_template -- TEMPLATE.jinja < conversations.jsonl
//! ```
use std::io::BufRead;

use pleach_render::{ChatTemplate, RenderError};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("give the file of a template")?;
    let special = [("bos_token", "<s>"), ("eos_token", "</s>"), ("unk_token", "<unk>")];
    let special = special.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let template = ChatTemplate::new(&std::fs::read_to_string(&file)?, &special, &file);
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        let messages = asked["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let tools = asked["tools"].as_array().map(Vec::as_slice);
        let prompt = asked["add_generation_prompt"] == true;
        let text = match &template {
            Ok(template) => template.render_with_tools(messages, tools, prompt).map_err(words),
            Err(error) => Err(error.to_string()),
        };
        println!("{}", text.map_or_else(|error| json!({"error": error}), Value::from));
    }
    Ok(())
}

fn words(error: RenderError) -> String {
    error.to_string()
}
