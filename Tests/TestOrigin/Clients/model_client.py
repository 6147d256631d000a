# SPDX-License-Identifier: Apache-2.0
"""The SDKs of two kinds of language models, with the key and the base URL of their own variables.

Usage: model_client.py openai|anthropic    Prints a line for each call: its name and what came of it.
"""

import sys

words = [{"role": "user", "content": "Hello?"}]
if sys.argv[1] == "openai":
    import openai as sdk

    client = sdk.OpenAI(max_retries=0)

    def ask(model, **more):
        return client.chat.completions.create(model=model, messages=words, **more)

    def text(answer):
        return answer.choices[0].message.content

    def pieces():
        return (part.choices[0].delta.content for part in ask("small", stream=True))
else:
    import anthropic as sdk

    client = sdk.Anthropic(max_retries=0)

    def ask(model, **more):
        return client.messages.create(model=model, max_tokens=9, messages=words, **more)

    def text(answer):
        return answer.content[0].text

    def pieces():
        return (event.delta.text for event in ask("small", stream=True) if event.type == "content_block_delta")


def stream():
    """The server sends the last piece only after the list of models has been read, so that no piece may be late."""
    found = []
    for piece in pieces():
        found.append(piece)
        if len(found) == 3:
            client.models.list()
    return "|".join(found)


calls = {
    "models": lambda: [model.id for model in client.models.list()],
    "answer": lambda: text(ask("small")),
    "stream": stream,
    "echo": lambda: repr(text(ask("echo"))),
}
for name, call in calls.items():
    try:
        print(name, call(), flush=True)
    except sdk.APIError as error:
        print(name, type(error).__name__, error.message, flush=True)
