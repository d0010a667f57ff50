# fish completion for strata. Written from the command definitions; do not edit.

# Whether the option $argv[2] of the command $argv[1] takes a value.
function __strata_takes
    switch "$argv[1] $argv[2]"
        case 'strata chat --prefix' 'strata chat --prefill' 'strata chat --prefix-file' 'strata chat -s' 'strata chat --system' 'strata chat -f' 'strata chat --file' 'strata chat --messages' 'strata chat --input' 'strata chat --dialect' 'strata chat --tools' 'strata chat --session' 'strata chat -m' 'strata chat --model' 'strata chat --template' 'strata chat --template-kwargs' 'strata chat --schema' 'strata chat --schema-mode' 'strata chat --grammar' 'strata chat -n' 'strata chat --max-tokens' 'strata chat --temp' 'strata chat --top-k' 'strata chat --top-p' 'strata chat --min-p' 'strata chat --seed' 'strata chat --repeat-penalty' 'strata chat --repeat-last-n' 'strata chat --presence-penalty' 'strata chat --frequency-penalty' 'strata chat --stop' 'strata chat -c' 'strata chat --ctx-size' 'strata chat -ngl' 'strata chat --gpu-layers' 'strata chat --n-cpu-moe' 'strata chat -t' 'strata chat --threads' 'strata chat -b' 'strata chat --batch-size' 'strata chat --ubatch-size' 'strata chat --flash-attn' 'strata chat --cache-type-k' 'strata chat --cache-type-v' 'strata chat --device' 'strata chat --lora' 'strata chat -o' 'strata chat --output' 'strata chat --format' 'strata chat --logprobs' 'strata chat --color' 'strata complete -f' 'strata complete --file' 'strata complete --input' 'strata complete --dialect' 'strata complete -m' 'strata complete --model' 'strata complete -n' 'strata complete --max-tokens' 'strata complete --temp' 'strata complete --top-k' 'strata complete --top-p' 'strata complete --min-p' 'strata complete --seed' 'strata complete --repeat-penalty' 'strata complete --repeat-last-n' 'strata complete --presence-penalty' 'strata complete --frequency-penalty' 'strata complete --stop' 'strata complete -c' 'strata complete --ctx-size' 'strata complete -ngl' 'strata complete --gpu-layers' 'strata complete --n-cpu-moe' 'strata complete -t' 'strata complete --threads' 'strata complete -b' 'strata complete --batch-size' 'strata complete --ubatch-size' 'strata complete --flash-attn' 'strata complete --cache-type-k' 'strata complete --cache-type-v' 'strata complete --device' 'strata complete --lora' 'strata complete -o' 'strata complete --output' 'strata complete --format' 'strata complete --logprobs' 'strata complete --color' 'strata render --prefix' 'strata render --prefill' 'strata render --prefix-file' 'strata render -s' 'strata render --system' 'strata render -f' 'strata render --file' 'strata render --messages' 'strata render --input' 'strata render --dialect' 'strata render --tools' 'strata render -m' 'strata render --model' 'strata render --template' 'strata render --template-kwargs' 'strata render --schema' 'strata render --schema-mode' 'strata render --grammar' 'strata render --bos' 'strata render --eos' 'strata render -o' 'strata render --output' 'strata render --format' 'strata render --color' 'strata bench --depth' 'strata bench --prompt-tokens' 'strata bench --tokens' 'strata bench --runs' 'strata bench --against' 'strata bench --format' 'strata bench -m' 'strata bench --model' 'strata bench -c' 'strata bench --ctx-size' 'strata bench -ngl' 'strata bench --gpu-layers' 'strata bench --n-cpu-moe' 'strata bench -t' 'strata bench --threads' 'strata bench -b' 'strata bench --batch-size' 'strata bench --ubatch-size' 'strata bench --flash-attn' 'strata bench --cache-type-k' 'strata bench --cache-type-v' 'strata bench --device' 'strata bench --lora' 'strata cache info --format'
            return 0
    end
    return 1
end

# Whether the word after $argv[2] is its value; of flags that are written together the last one decides.
function __strata_wants
    __strata_takes $argv
    and return 0
    string match -qr -- '^-[^-=]+$' $argv[2]
    or return 1
    set -l letters (string split '' -- (string sub -s 2 -- $argv[2]))
    for at in (seq (count $letters))
        if __strata_takes $argv[1] -$letters[$at]
            test $at -eq (count $letters)
            return
        end
    end
    return 1
end

# Whether the words before the cursor call this command and, where $argv[2] is given, so many arguments follow it.
function __strata_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l command strata
    set -l count 0
    set -l wants
    set -l ended
    for word in $words
        if set -q wants[1]
            set -e wants
        else if set -q ended[1]
            set count (math $count + 1)
        else if test "$word" = --
            set ended yes
        else if string match -qr -- '^(--[^\s=]+=|-\S+$)' $word
            __strata_wants $command $word
            and set wants yes
        else if contains -- "$command $word" 'strata chat' 'strata complete' 'strata render' 'strata bench' 'strata completion' 'strata man' 'strata cache' 'strata cache info' 'strata cache clear' 'strata models' 'strata models list' 'strata models path'
            set command "$command $word"
            set count 0
        else
            set count (math $count + 1)
        end
    end
    test "$command" = $argv[1]
    or return 1
    not set -q argv[2]
    or test $count -eq $argv[2]
end

function __strata_model_names
    strata models list --names 2>/dev/null </dev/null
end

complete -c strata -f
complete -c strata -n '__strata_at \'strata\' 0' -a chat -d 'Answer a prompt or a conversation, or go on with an answer'
complete -c strata -n '__strata_at \'strata\' 0' -a complete -d 'Continue raw text, without a chat template'
complete -c strata -n '__strata_at \'strata\' 0' -a render -d 'Show a request as its exact prompt, with its token counts'
complete -c strata -n '__strata_at \'strata\' 0' -a bench -d 'Measure the speed of prefill and decode'
complete -c strata -n '__strata_at \'strata\' 0' -a completion -d 'Print the completion script of a shell'
complete -c strata -n '__strata_at \'strata\' 0' -a man -d 'Print a manual page'
complete -c strata -n '__strata_at \'strata\' 0' -a cache -d 'Say what the cache of evaluated prompts holds, or empty it'
complete -c strata -n '__strata_at \'strata\' 0' -a models -d 'List the models on this machine, or say where one is'
complete -c strata -n '__strata_at \'strata\'' -l version -d 'Show the version and exit'
complete -c strata -n '__strata_at \'strata\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata chat\'' -l prefix -l prefill -x -d 'The beginning of the answer'
complete -c strata -n '__strata_at \'strata chat\'' -l prefix-file -r -F -d 'Read the beginning of the answer from a file'
complete -c strata -n '__strata_at \'strata chat\'' -l continue -l continue-final -d 'Continue the final assistant message of the conversation'
complete -c strata -n '__strata_at \'strata chat\'' -s s -l system -x -d 'The system message'
complete -c strata -n '__strata_at \'strata chat\'' -s f -l file -r -F -d 'Read the prompt from a file'
complete -c strata -n '__strata_at \'strata chat\'' -l messages -r -F -d 'Read a JSON conversation from a file'
complete -c strata -n '__strata_at \'strata chat\'' -l input -x -a 'auto text json jsonl none' -d 'What standard input holds; none leaves it alone. [auto]'
complete -c strata -n '__strata_at \'strata chat\'' -l dialect -x -a 'auto openai anthropic' -d 'Whose JSON comes and goes; auto sees it from the request. [auto]'
complete -c strata -n '__strata_at \'strata chat\'' -l tools -r -F -d 'Read tool definitions, as OpenAI or Anthropic write them'
complete -c strata -n '__strata_at \'strata chat\'' -l session -r -F -d 'Go on with the conversation in this file, and keep it'
complete -c strata -n '__strata_at \'strata chat\'' -s m -l model -r -F -a '(__strata_model_names)' -d 'A GGUF file or a model\'s name. [STRATA_MODEL]'
complete -c strata -n '__strata_at \'strata chat\'' -l think -d 'Ask the template for reasoning, or for none'
complete -c strata -n '__strata_at \'strata chat\'' -l no-think -d 'Ask the template for reasoning, or for none'
complete -c strata -n '__strata_at \'strata chat\'' -l template -r -F -d 'A Jinja chat template instead of the model\'s'
complete -c strata -n '__strata_at \'strata chat\'' -l template-kwargs -x -d 'More variables for the template'
complete -c strata -n '__strata_at \'strata chat\'' -l schema -r -F -d 'The answer is a JSON document by this schema'
complete -c strata -n '__strata_at \'strata chat\'' -l schema-mode -x -a 'constrain validate' -d 'Write nothing else, or only check what was written. [constrain]'
complete -c strata -n '__strata_at \'strata chat\'' -l grammar -r -F -d 'The answer is a text by this grammar: GBNF, Lark or a regular expression'
complete -c strata -n '__strata_at \'strata chat\'' -l no-schema-instruction -d 'Do not tell the model the schema'
complete -c strata -n '__strata_at \'strata chat\'' -s n -l max-tokens -x -d 'Generate at most N tokens. [as many as fit]'
complete -c strata -n '__strata_at \'strata chat\'' -l temp -x -d 'Temperature; 0 takes the likeliest token. [0.8]'
complete -c strata -n '__strata_at \'strata chat\'' -l top-k -x -d 'Keep the N likeliest tokens; 0 keeps all. [40]'
complete -c strata -n '__strata_at \'strata chat\'' -l top-p -x -d 'Keep a probability mass of P. [0.95]'
complete -c strata -n '__strata_at \'strata chat\'' -l min-p -x -d 'Drop below P of the likeliest. [0.05]'
complete -c strata -n '__strata_at \'strata chat\'' -l seed -x -d 'Make the choices repeatable. [another each time]'
complete -c strata -n '__strata_at \'strata chat\'' -l repeat-penalty -x -d 'Penalise repetition; 1 is off. [1.0]'
complete -c strata -n '__strata_at \'strata chat\'' -l repeat-last-n -x -d 'Tokens that penalties look back on. [64]'
complete -c strata -n '__strata_at \'strata chat\'' -l presence-penalty -x -d 'Penalise tokens that occurred. [0.0]'
complete -c strata -n '__strata_at \'strata chat\'' -l frequency-penalty -x -d 'Penalise tokens by how often. [0.0]'
complete -c strata -n '__strata_at \'strata chat\'' -l stop -x -d 'End before this text in the answer (repeatable)'
complete -c strata -n '__strata_at \'strata chat\'' -s c -l ctx-size -x -d 'Tokens of prompt and answer together. [the model\'s]'
complete -c strata -n '__strata_at \'strata chat\'' -o ngl -l gpu-layers -x -a 'auto all' -d 'Layers on the GPU. [auto]'
complete -c strata -n '__strata_at \'strata chat\'' -l n-cpu-moe -x -d 'Layers whose experts stay on the CPU'
complete -c strata -n '__strata_at \'strata chat\'' -s t -l threads -x -d 'Threads. [one a core]'
complete -c strata -n '__strata_at \'strata chat\'' -s b -l batch-size -x -d 'Tokens evaluated at once. [as --ubatch-size]'
complete -c strata -n '__strata_at \'strata chat\'' -l ubatch-size -x -d 'Tokens that the device takes at once. [512, or less]'
complete -c strata -n '__strata_at \'strata chat\'' -l flash-attn -x -a 'auto on off' -d 'Flash attention. [auto]'
complete -c strata -n '__strata_at \'strata chat\'' -l cache-type-k -x -a 'f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1' -d 'KV cache type of the keys. [f16]'
complete -c strata -n '__strata_at \'strata chat\'' -l cache-type-v -x -a 'f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1' -d 'KV cache type of the values. [f16]'
complete -c strata -n '__strata_at \'strata chat\'' -l device -x -d 'Use this device only (repeatable)'
complete -c strata -n '__strata_at \'strata chat\'' -l lora -r -F -d 'A LoRA adapter (repeatable)'
complete -c strata -n '__strata_at \'strata chat\'' -s o -l output -r -F -d 'Write the answer to a file'
complete -c strata -n '__strata_at \'strata chat\'' -l format -x -a 'text json jsonl' -d 'What is written; jsonl is the answer\'s stream, an event a line. [text]'
complete -c strata -n '__strata_at \'strata chat\'' -l logprobs -x -d 'In JSON, each token with the N likeliest'
complete -c strata -n '__strata_at \'strata chat\'' -l echo -d 'Write the prefix before its continuation'
complete -c strata -n '__strata_at \'strata chat\'' -l raw -d 'On a terminal too, the answer as it is, not as drawn markdown'
complete -c strata -n '__strata_at \'strata chat\'' -l hide-thinking -d 'In text, leave the reasoning out'
complete -c strata -n '__strata_at \'strata chat\'' -l no-cache -d 'Neither read nor keep evaluated prompts on disk'
complete -c strata -n '__strata_at \'strata chat\'' -l stats -d 'Speeds and counts, on standard error'
complete -c strata -n '__strata_at \'strata chat\'' -l debug -d 'Prefill accounting and llama.cpp\'s log, on standard error'
complete -c strata -n '__strata_at \'strata chat\'' -s q -l quiet -d 'No notes and no progress'
complete -c strata -n '__strata_at \'strata chat\'' -l color -x -a 'auto always never' -d 'When to use colour. [auto]'
complete -c strata -n '__strata_at \'strata chat\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata complete\'' -s f -l file -r -F -d 'Read the text from a file'
complete -c strata -n '__strata_at \'strata complete\'' -l input -x -a 'auto text none' -d 'What standard input holds; none leaves it alone. [auto]'
complete -c strata -n '__strata_at \'strata complete\'' -l dialect -x -a 'auto openai anthropic' -d 'Whose JSON comes and goes; auto sees it from the request. [auto]'
complete -c strata -n '__strata_at \'strata complete\'' -s m -l model -r -F -a '(__strata_model_names)' -d 'A GGUF file or a model\'s name. [STRATA_MODEL]'
complete -c strata -n '__strata_at \'strata complete\'' -s n -l max-tokens -x -d 'Generate at most N tokens. [as many as fit]'
complete -c strata -n '__strata_at \'strata complete\'' -l temp -x -d 'Temperature; 0 takes the likeliest token. [0.8]'
complete -c strata -n '__strata_at \'strata complete\'' -l top-k -x -d 'Keep the N likeliest tokens; 0 keeps all. [40]'
complete -c strata -n '__strata_at \'strata complete\'' -l top-p -x -d 'Keep a probability mass of P. [0.95]'
complete -c strata -n '__strata_at \'strata complete\'' -l min-p -x -d 'Drop below P of the likeliest. [0.05]'
complete -c strata -n '__strata_at \'strata complete\'' -l seed -x -d 'Make the choices repeatable. [another each time]'
complete -c strata -n '__strata_at \'strata complete\'' -l repeat-penalty -x -d 'Penalise repetition; 1 is off. [1.0]'
complete -c strata -n '__strata_at \'strata complete\'' -l repeat-last-n -x -d 'Tokens that penalties look back on. [64]'
complete -c strata -n '__strata_at \'strata complete\'' -l presence-penalty -x -d 'Penalise tokens that occurred. [0.0]'
complete -c strata -n '__strata_at \'strata complete\'' -l frequency-penalty -x -d 'Penalise tokens by how often. [0.0]'
complete -c strata -n '__strata_at \'strata complete\'' -l stop -x -d 'End before this text in the answer (repeatable)'
complete -c strata -n '__strata_at \'strata complete\'' -s c -l ctx-size -x -d 'Tokens of prompt and answer together. [the model\'s]'
complete -c strata -n '__strata_at \'strata complete\'' -o ngl -l gpu-layers -x -a 'auto all' -d 'Layers on the GPU. [auto]'
complete -c strata -n '__strata_at \'strata complete\'' -l n-cpu-moe -x -d 'Layers whose experts stay on the CPU'
complete -c strata -n '__strata_at \'strata complete\'' -s t -l threads -x -d 'Threads. [one a core]'
complete -c strata -n '__strata_at \'strata complete\'' -s b -l batch-size -x -d 'Tokens evaluated at once. [as --ubatch-size]'
complete -c strata -n '__strata_at \'strata complete\'' -l ubatch-size -x -d 'Tokens that the device takes at once. [512, or less]'
complete -c strata -n '__strata_at \'strata complete\'' -l flash-attn -x -a 'auto on off' -d 'Flash attention. [auto]'
complete -c strata -n '__strata_at \'strata complete\'' -l cache-type-k -x -a 'f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1' -d 'KV cache type of the keys. [f16]'
complete -c strata -n '__strata_at \'strata complete\'' -l cache-type-v -x -a 'f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1' -d 'KV cache type of the values. [f16]'
complete -c strata -n '__strata_at \'strata complete\'' -l device -x -d 'Use this device only (repeatable)'
complete -c strata -n '__strata_at \'strata complete\'' -l lora -r -F -d 'A LoRA adapter (repeatable)'
complete -c strata -n '__strata_at \'strata complete\'' -s o -l output -r -F -d 'Write the answer to a file'
complete -c strata -n '__strata_at \'strata complete\'' -l format -x -a 'text json jsonl' -d 'What is written; jsonl is the answer\'s stream, an event a line. [text]'
complete -c strata -n '__strata_at \'strata complete\'' -l logprobs -x -d 'In JSON, each token with the N likeliest'
complete -c strata -n '__strata_at \'strata complete\'' -l echo -d 'Write the prefix before its continuation'
complete -c strata -n '__strata_at \'strata complete\'' -l raw -d 'On a terminal too, the answer as it is, not as drawn markdown'
complete -c strata -n '__strata_at \'strata complete\'' -l hide-thinking -d 'In text, leave the reasoning out'
complete -c strata -n '__strata_at \'strata complete\'' -l no-cache -d 'Neither read nor keep evaluated prompts on disk'
complete -c strata -n '__strata_at \'strata complete\'' -l stats -d 'Speeds and counts, on standard error'
complete -c strata -n '__strata_at \'strata complete\'' -l debug -d 'Prefill accounting and llama.cpp\'s log, on standard error'
complete -c strata -n '__strata_at \'strata complete\'' -s q -l quiet -d 'No notes and no progress'
complete -c strata -n '__strata_at \'strata complete\'' -l color -x -a 'auto always never' -d 'When to use colour. [auto]'
complete -c strata -n '__strata_at \'strata complete\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata render\'' -l prefix -l prefill -x -d 'The beginning of the answer'
complete -c strata -n '__strata_at \'strata render\'' -l prefix-file -r -F -d 'Read the beginning of the answer from a file'
complete -c strata -n '__strata_at \'strata render\'' -l continue -l continue-final -d 'Continue the final assistant message of the conversation'
complete -c strata -n '__strata_at \'strata render\'' -s s -l system -x -d 'The system message'
complete -c strata -n '__strata_at \'strata render\'' -s f -l file -r -F -d 'Read the prompt from a file'
complete -c strata -n '__strata_at \'strata render\'' -l messages -r -F -d 'Read a JSON conversation from a file'
complete -c strata -n '__strata_at \'strata render\'' -l input -x -a 'auto text json jsonl none' -d 'What standard input holds; none leaves it alone. [auto]'
complete -c strata -n '__strata_at \'strata render\'' -l dialect -x -a 'auto openai anthropic' -d 'Whose JSON comes and goes; auto sees it from the request. [auto]'
complete -c strata -n '__strata_at \'strata render\'' -l tools -r -F -d 'Read tool definitions, as OpenAI or Anthropic write them'
complete -c strata -n '__strata_at \'strata render\'' -s m -l model -r -F -a '(__strata_model_names)' -d 'A GGUF file or a model\'s name. [STRATA_MODEL]'
complete -c strata -n '__strata_at \'strata render\'' -l think -d 'Ask the template for reasoning, or for none'
complete -c strata -n '__strata_at \'strata render\'' -l no-think -d 'Ask the template for reasoning, or for none'
complete -c strata -n '__strata_at \'strata render\'' -l template -r -F -d 'A Jinja chat template instead of the model\'s'
complete -c strata -n '__strata_at \'strata render\'' -l template-kwargs -x -d 'More variables for the template'
complete -c strata -n '__strata_at \'strata render\'' -l schema -r -F -d 'The answer is a JSON document by this schema'
complete -c strata -n '__strata_at \'strata render\'' -l schema-mode -x -a 'constrain validate' -d 'Write nothing else, or only check what was written. [constrain]'
complete -c strata -n '__strata_at \'strata render\'' -l grammar -r -F -d 'The answer is a text by this grammar: GBNF, Lark or a regular expression'
complete -c strata -n '__strata_at \'strata render\'' -l no-schema-instruction -d 'Do not tell the model the schema'
complete -c strata -n '__strata_at \'strata render\'' -l bos -x -d 'The BOS token, where no model is read'
complete -c strata -n '__strata_at \'strata render\'' -l eos -x -d 'The EOS token, where no model is read'
complete -c strata -n '__strata_at \'strata render\'' -s o -l output -r -F -d 'Write the prompt to a file'
complete -c strata -n '__strata_at \'strata render\'' -l format -x -a 'text json' -d 'What is written. [text]'
complete -c strata -n '__strata_at \'strata render\'' -l debug -d 'Prefill accounting and llama.cpp\'s log, on standard error'
complete -c strata -n '__strata_at \'strata render\'' -s q -l quiet -d 'No notes and no progress'
complete -c strata -n '__strata_at \'strata render\'' -l color -x -a 'auto always never' -d 'When to use colour. [auto]'
complete -c strata -n '__strata_at \'strata render\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata bench\' 0' -F -a '(__strata_model_names)' -d 'A GGUF file or a model\'s name'
complete -c strata -n '__strata_at \'strata bench\'' -l depth -x -d 'Tokens in the cache before (repeatable). [0,512]'
complete -c strata -n '__strata_at \'strata bench\'' -l prompt-tokens -x -d 'Tokens to evaluate. [128]'
complete -c strata -n '__strata_at \'strata bench\'' -l tokens -x -d 'Tokens to decode. [32]'
complete -c strata -n '__strata_at \'strata bench\'' -l runs -x -d 'Runs of each. [5]'
complete -c strata -n '__strata_at \'strata bench\'' -l against -x -a 'raw' -d 'Beside it, a bare loop over llama.cpp, in turns'
complete -c strata -n '__strata_at \'strata bench\'' -l format -x -a 'text json' -d 'What is written. [text]'
complete -c strata -n '__strata_at \'strata bench\'' -l debug -d 'Prefill accounting and llama.cpp\'s log, on standard error'
complete -c strata -n '__strata_at \'strata bench\'' -s q -l quiet -d 'No notes and no progress'
complete -c strata -n '__strata_at \'strata bench\'' -s m -l model -r -F -a '(__strata_model_names)' -d 'A GGUF file or a model\'s name. [STRATA_MODEL]'
complete -c strata -n '__strata_at \'strata bench\'' -s c -l ctx-size -x -d 'Tokens of prompt and answer together. [the model\'s]'
complete -c strata -n '__strata_at \'strata bench\'' -o ngl -l gpu-layers -x -a 'auto all' -d 'Layers on the GPU. [auto]'
complete -c strata -n '__strata_at \'strata bench\'' -l n-cpu-moe -x -d 'Layers whose experts stay on the CPU'
complete -c strata -n '__strata_at \'strata bench\'' -s t -l threads -x -d 'Threads. [one a core]'
complete -c strata -n '__strata_at \'strata bench\'' -s b -l batch-size -x -d 'Tokens evaluated at once. [as --ubatch-size]'
complete -c strata -n '__strata_at \'strata bench\'' -l ubatch-size -x -d 'Tokens that the device takes at once. [512, or less]'
complete -c strata -n '__strata_at \'strata bench\'' -l flash-attn -x -a 'auto on off' -d 'Flash attention. [auto]'
complete -c strata -n '__strata_at \'strata bench\'' -l cache-type-k -x -a 'f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1' -d 'KV cache type of the keys. [f16]'
complete -c strata -n '__strata_at \'strata bench\'' -l cache-type-v -x -a 'f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1' -d 'KV cache type of the values. [f16]'
complete -c strata -n '__strata_at \'strata bench\'' -l device -x -d 'Use this device only (repeatable)'
complete -c strata -n '__strata_at \'strata bench\'' -l lora -r -F -d 'A LoRA adapter (repeatable)'
complete -c strata -n '__strata_at \'strata bench\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata completion\' 0' -a 'bash zsh fish' -d 'bash, zsh or fish'
complete -c strata -n '__strata_at \'strata completion\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata man\' 0' -a 'chat complete render bench completion man cache models' -d 'A command, or nothing for strata itself'
complete -c strata -n '__strata_at \'strata man\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata cache\' 0' -a info -d 'Say where the cache is, how many prompts it holds, and their size'
complete -c strata -n '__strata_at \'strata cache\' 0' -a clear -d 'Remove all evaluated prompts'
complete -c strata -n '__strata_at \'strata cache\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata cache info\'' -l format -x -a 'text json' -d 'What is written'
complete -c strata -n '__strata_at \'strata cache info\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata cache clear\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata models\' 0' -a list -d 'List the models of the current folder, of the Hugging Face cache and of the demo package'
complete -c strata -n '__strata_at \'strata models\' 0' -a path -d 'Print the file behind a model\'s name, or that of the model that answers where none is named'
complete -c strata -n '__strata_at \'strata models\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata models list\'' -l names -d 'Names only, one a line'
complete -c strata -n '__strata_at \'strata models list\'' -s h -l help -d 'Show this message and exit'
complete -c strata -n '__strata_at \'strata models path\' 0' -F -a '(__strata_model_names)' -d 'A name or a file'
complete -c strata -n '__strata_at \'strata models path\'' -s h -l help -d 'Show this message and exit'
