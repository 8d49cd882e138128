"""Compares this crate's chat templates with Jinja2, set up as transformers sets it up, over a folder of templates.

    pip install jinja2
    cargo build -p pleach-render --example render_template
    python crates/render/tools/compare_templates.py FOLDER [target/debug/examples/render_template]

Every `*.jinja` file renders a few conversations in both; a difference is printed with both texts. Errors count as equal where both
refuse. Exit status 1 where anything differs.
"""
import datetime, json, pathlib, subprocess, sys

from jinja2 import TemplateError, nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    """`{% generation %}`, which only says which characters are trained."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def environment():
    def refuse(message):
        raise TemplateError(message)

    def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = lambda form: datetime.datetime.now(datetime.timezone.utc).strftime(form)
    return made


TOOLS = [{"type": "function", "function": {"name": "ring", "description": "Ring é \"loud\"", "parameters": {"type": "object", "properties": {
    "times": {"type": "integer", "description": "how often"}, "bell": {"type": "string", "enum": ["big", "small"]}}, "required": ["times"]}}}]
CALL = {"id": "call00001", "type": "function", "function": {"name": "ring", "arguments": {"times": 2, "bell": "big \"é\"", "deep": {"a": [1.5, None, True]}}}}
SYSTEM, ASK = {"role": "system", "content": "Keep the tower."}, {"role": "user", "content": " Ring.\n"}
ANSWER = {"role": "assistant", "content": "Rung."}
THOUGHT = {"role": "assistant", "content": "Rung.", "reasoning_content": "How loud?\n"}
INLINE = {"role": "assistant", "content": "<think>\nHow loud?\n</think>\n\nRung."}
CALLS = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "name": "ring", "tool_call_id": "call00001", "content": "rung"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "See."}]}
CONVERSATIONS = [
    [ASK], [SYSTEM, ASK], [ASK, ANSWER, ASK], [SYSTEM, ASK, THOUGHT], [SYSTEM, ASK, THOUGHT, ASK], [ASK, INLINE], [ASK, INLINE, ASK, ANSWER],
    [SYSTEM, ASK, CALLS], [SYSTEM, ASK, CALLS, RESULT], [ASK, CALLS, RESULT, ANSWER, ASK], [PARTS], [ASK, ASK], [ANSWER], [],
]


def main(folder, program="target/debug/examples/render_template"):
    asked = [{"messages": messages, "tools": tools, "add_generation_prompt": prompt}
             for messages in CONVERSATIONS for tools in (None, TOOLS) for prompt in (False, True)]
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    files = sorted(pathlib.Path(folder).rglob("*.jinja"))
    differ = 0
    for file in files:
        ours = subprocess.run([program, file], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        try:
            template = environment().from_string(file.read_text())
        except TemplateSyntaxError as error:
            template = error
        worst = None
        for one, line in zip(asked, ours, strict=True):
            try:
                if isinstance(template, Exception):
                    raise template
                expected = template.render(**one, documents=None, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
            except Exception as error:  # Whatever a template raises, it refuses.
                expected = {"error": str(error)}
            found = json.loads(line)
            same = found == expected or isinstance(found, dict) and isinstance(expected, dict)
            worst = worst or (None if same else (one, expected, found))
        if worst:
            differ += 1
            print(f"{file}: differs on {json.dumps(worst[0])[:400]}\n  Jinja2: {worst[1]!r}\n  here:   {worst[2]!r}")
    print(f"{len(files)} templates, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
