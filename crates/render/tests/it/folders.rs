//! Contract: a tokenizer's folder is read as transformers reads it, and what cannot be told from it
//! is an error that names the file.
use crate::tokenizer;

use pleach_render::{RenderError, Renderer};
use tempfile::TempDir;

const CHATML: &str = "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A folder with a tokenizer of words and the files that are given.
fn folder(files: &[(&str, serde_json::Value)]) -> TempDir {
    let folder = tokenizer::folder(&tokenizer::byte_level(false), CHATML);
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content.to_string()).unwrap();
    }
    folder
}

fn rendered(renderer: &Renderer) -> String {
    let message = serde_json::json!({"role": "user", "content": "hello"});
    renderer.template().render(&[message], false).unwrap()
}

fn token(content: &str, special: bool) -> serde_json::Value {
    serde_json::json!({"content": content, "special": special, "normalized": false, "lstrip": false, "rstrip": false, "single_word": false})
}

#[test]
fn special_tokens_come_from_their_map_unless_the_configuration_lists_its_added_tokens() {
    let map = ("special_tokens_map.json", serde_json::json!({"bos_token": {"content": "<s>"}}));
    let config = |more: &[(&str, serde_json::Value)]| {
        let mut config = serde_json::json!({"bos_token": "<b>"});
        more.iter().for_each(|(key, value)| config[key] = value.clone());
        ("tokenizer_config.json", config)
    };
    let of = |files: &[_]| rendered(&Renderer::open(folder(files).path()).unwrap());
    assert!(of(&[map.clone(), config(&[])]).starts_with("<s><|im_start|>"));
    let lists = config(&[("added_tokens_decoder", serde_json::json!({}))]);
    assert!(of(&[map, lists]).starts_with("<b><|im_start|>"));
}

#[test]
fn added_tokens_that_the_tokenizer_lacks_come_from_the_files_beside_it() {
    let plain = Renderer::open(folder(&[]).path()).unwrap();
    let next = plain.identity().vocab_size.unwrap();
    assert!(plain.encode("<|im_start|>").unwrap().len() > 1);
    let decoder = serde_json::json!({"added_tokens_decoder": {
        (next + 1).to_string(): token("<|im_end|>", true),
        next.to_string(): token("<|im_start|>", true),
    }});
    let older = serde_json::json!({"<|im_end|>": next + 1, "<|im_start|>": next});
    for files in [("tokenizer_config.json", decoder), ("added_tokens.json", older)] {
        let renderer = Renderer::open(folder(&[files]).path()).unwrap();
        let ids = renderer.encode("<|im_start|><|im_end|>").unwrap();
        assert_eq!(ids, [next, next + 1]);
    }
}

#[test]
fn of_several_templates_the_default_one_is_taken_or_none() {
    let list = |names: &[&str]| {
        let entry =
            |name: &&str| serde_json::json!({"name": name, "template": format!("T {name}")});
        let list: Vec<_> = names.iter().map(entry).collect();
        let folder =
            folder(&[("tokenizer_config.json", serde_json::json!({"chat_template": list}))]);
        std::fs::remove_file(folder.path().join("chat_template.jinja")).unwrap();
        Renderer::open(folder.path())
    };
    assert_eq!(rendered(&list(&["rag", "default"]).unwrap()), "T default");
    let error = list(&["rag", "tool_use"]).unwrap_err();
    assert!(
        matches!(&error, RenderError::Templates { names, .. } if names == &["rag", "tool_use"])
    );
    assert!(error.to_string().contains("tokenizer_config.json"), "{error}");
}

#[test]
fn a_broken_file_beside_the_tokenizer_is_named() {
    for name in ["special_tokens_map.json", "generation_config.json", "chat_template.json"] {
        let folder = folder(&[]);
        std::fs::write(folder.path().join(name), "{").unwrap();
        let error = Renderer::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}
