# bash completion for strata. Written from the command definitions; do not edit.

# Sets words, the words up to the cursor as they are typed, and cut, what bash has cut off the last one.
_strata_words() {
    local rest=${COMP_LINE:0:COMP_POINT} index piece glued
    words=() cut=
    for ((index = 0; index <= COMP_CWORD; index++)); do
        piece=${COMP_WORDS[index]} glued=yes
        while [[ $rest == [[:space:]]* ]]; do
            rest=${rest:1} glued=
        done
        [[ $index -lt $COMP_CWORD ]] || piece=$rest
        rest=${rest:${#piece}}
        if [[ $glued && $index -gt 0 ]]; then
            cut=${words[${#words[@]} - 1]}
            words[${#words[@]} - 1]=$cut$piece
            [[ $piece != [=:] ]] || cut=$cut$piece
        else
            words[${#words[@]}]=$piece cut=
        fi
    done
}

# Sets commands and options, what the command offers.
_strata_command() {
    commands=() options=()
    case $command in
        strata) commands=(chat complete render bench completion man cache models) options=(--version -h --help) ;;
        'strata chat') options=(--prefix --prefill --prefix-file --continue --continue-final -s --system -f --file --messages --input --dialect --tools --session -m --model --think --no-think --template --template-kwargs --schema --schema-mode --grammar --no-schema-instruction -n --max-tokens --temp --top-k --top-p --min-p --seed --repeat-penalty --repeat-last-n --presence-penalty --frequency-penalty --stop -c --ctx-size -ngl --gpu-layers --n-cpu-moe -t --threads -b --batch-size --ubatch-size --flash-attn --cache-type-k --cache-type-v --device --lora -o --output --format --logprobs --echo --raw --hide-thinking --no-cache --stats --debug -q --quiet --color -h --help) ;;
        'strata complete') options=(-f --file --input --dialect -m --model -n --max-tokens --temp --top-k --top-p --min-p --seed --repeat-penalty --repeat-last-n --presence-penalty --frequency-penalty --stop -c --ctx-size -ngl --gpu-layers --n-cpu-moe -t --threads -b --batch-size --ubatch-size --flash-attn --cache-type-k --cache-type-v --device --lora -o --output --format --logprobs --echo --raw --hide-thinking --no-cache --stats --debug -q --quiet --color -h --help) ;;
        'strata render') options=(--prefix --prefill --prefix-file --continue --continue-final -s --system -f --file --messages --input --dialect --tools -m --model --think --no-think --template --template-kwargs --schema --schema-mode --grammar --no-schema-instruction --bos --eos -o --output --format --debug -q --quiet --color -h --help) ;;
        'strata bench') options=(--depth --prompt-tokens --tokens --runs --against --format --debug -q --quiet -m --model -c --ctx-size -ngl --gpu-layers --n-cpu-moe -t --threads -b --batch-size --ubatch-size --flash-attn --cache-type-k --cache-type-v --device --lora -h --help) ;;
        'strata completion') options=(-h --help) ;;
        'strata man') options=(-h --help) ;;
        'strata cache') commands=(info clear) options=(-h --help) ;;
        'strata cache info') options=(--format -h --help) ;;
        'strata cache clear') options=(-h --help) ;;
        'strata models') commands=(list path) options=(-h --help) ;;
        'strata models list') options=(--names -h --help) ;;
        'strata models path') options=(-h --help) ;;
    esac
}

# Sets takes, what the option $1 of the command takes, and choices; empty for a flag and for what is no option.
_strata_option() {
    takes='' choices=()
    case "$command $1" in
        'strata chat --prefix' | 'strata chat --prefill' | 'strata chat -s' | 'strata chat --system' | 'strata chat --template-kwargs' | 'strata chat -n' | 'strata chat --max-tokens' | 'strata chat --temp' | 'strata chat --top-k' | 'strata chat --top-p' | 'strata chat --min-p' | 'strata chat --seed' | 'strata chat --repeat-penalty' | 'strata chat --repeat-last-n' | 'strata chat --presence-penalty' | 'strata chat --frequency-penalty' | 'strata chat --stop' | 'strata chat -c' | 'strata chat --ctx-size' | 'strata chat --n-cpu-moe' | 'strata chat -t' | 'strata chat --threads' | 'strata chat -b' | 'strata chat --batch-size' | 'strata chat --ubatch-size' | 'strata chat --device' | 'strata chat --logprobs') takes='nothing' ;;
        'strata chat --prefix-file' | 'strata chat -f' | 'strata chat --file' | 'strata chat --messages' | 'strata chat --tools' | 'strata chat --session' | 'strata chat --template' | 'strata chat --schema' | 'strata chat --grammar' | 'strata chat --lora' | 'strata chat -o' | 'strata chat --output') takes='file' ;;
        'strata chat --input') takes='choice' choices=(auto text json jsonl none) ;;
        'strata chat --dialect') takes='choice' choices=(auto openai anthropic) ;;
        'strata chat -m' | 'strata chat --model') takes='model' ;;
        'strata chat --schema-mode') takes='choice' choices=(constrain validate) ;;
        'strata chat -ngl' | 'strata chat --gpu-layers') takes='choice' choices=(auto all) ;;
        'strata chat --flash-attn') takes='choice' choices=(auto on off) ;;
        'strata chat --cache-type-k' | 'strata chat --cache-type-v') takes='choice' choices=(f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1) ;;
        'strata chat --format') takes='choice' choices=(text json jsonl) ;;
        'strata chat --color') takes='choice' choices=(auto always never) ;;
        'strata complete -f' | 'strata complete --file' | 'strata complete --lora' | 'strata complete -o' | 'strata complete --output') takes='file' ;;
        'strata complete --input') takes='choice' choices=(auto text none) ;;
        'strata complete --dialect') takes='choice' choices=(auto openai anthropic) ;;
        'strata complete -m' | 'strata complete --model') takes='model' ;;
        'strata complete -n' | 'strata complete --max-tokens' | 'strata complete --temp' | 'strata complete --top-k' | 'strata complete --top-p' | 'strata complete --min-p' | 'strata complete --seed' | 'strata complete --repeat-penalty' | 'strata complete --repeat-last-n' | 'strata complete --presence-penalty' | 'strata complete --frequency-penalty' | 'strata complete --stop' | 'strata complete -c' | 'strata complete --ctx-size' | 'strata complete --n-cpu-moe' | 'strata complete -t' | 'strata complete --threads' | 'strata complete -b' | 'strata complete --batch-size' | 'strata complete --ubatch-size' | 'strata complete --device' | 'strata complete --logprobs') takes='nothing' ;;
        'strata complete -ngl' | 'strata complete --gpu-layers') takes='choice' choices=(auto all) ;;
        'strata complete --flash-attn') takes='choice' choices=(auto on off) ;;
        'strata complete --cache-type-k' | 'strata complete --cache-type-v') takes='choice' choices=(f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1) ;;
        'strata complete --format') takes='choice' choices=(text json jsonl) ;;
        'strata complete --color') takes='choice' choices=(auto always never) ;;
        'strata render --prefix' | 'strata render --prefill' | 'strata render -s' | 'strata render --system' | 'strata render --template-kwargs' | 'strata render --bos' | 'strata render --eos') takes='nothing' ;;
        'strata render --prefix-file' | 'strata render -f' | 'strata render --file' | 'strata render --messages' | 'strata render --tools' | 'strata render --template' | 'strata render --schema' | 'strata render --grammar' | 'strata render -o' | 'strata render --output') takes='file' ;;
        'strata render --input') takes='choice' choices=(auto text json jsonl none) ;;
        'strata render --dialect') takes='choice' choices=(auto openai anthropic) ;;
        'strata render -m' | 'strata render --model') takes='model' ;;
        'strata render --schema-mode') takes='choice' choices=(constrain validate) ;;
        'strata render --format') takes='choice' choices=(text json) ;;
        'strata render --color') takes='choice' choices=(auto always never) ;;
        'strata bench --depth' | 'strata bench --prompt-tokens' | 'strata bench --tokens' | 'strata bench --runs' | 'strata bench -c' | 'strata bench --ctx-size' | 'strata bench --n-cpu-moe' | 'strata bench -t' | 'strata bench --threads' | 'strata bench -b' | 'strata bench --batch-size' | 'strata bench --ubatch-size' | 'strata bench --device') takes='nothing' ;;
        'strata bench --against') takes='choice' choices=(raw) ;;
        'strata bench --format') takes='choice' choices=(text json) ;;
        'strata bench -m' | 'strata bench --model') takes='model' ;;
        'strata bench -ngl' | 'strata bench --gpu-layers') takes='choice' choices=(auto all) ;;
        'strata bench --flash-attn') takes='choice' choices=(auto on off) ;;
        'strata bench --cache-type-k' | 'strata bench --cache-type-v') takes='choice' choices=(f32 f16 bf16 q8_0 q4_0 q4_1 iq4_nl q5_0 q5_1) ;;
        'strata bench --lora') takes='file' ;;
        'strata cache info --format') takes='choice' choices=(text json) ;;
    esac
}

# The same for the command's argument number $1, from 0.
_strata_argument() {
    takes='' choices=()
    case "$command $1" in
        'strata chat '*) takes='nothing' ;;
        'strata complete '*) takes='nothing' ;;
        'strata render '*) takes='nothing' ;;
        'strata bench 0') takes='model' ;;
        'strata completion 0') takes='choice' choices=(bash zsh fish) ;;
        'strata man 0') takes='choice' choices=(chat complete render bench completion man cache models) ;;
        'strata models path 0') takes='model' ;;
    esac
}

# Whether the option $1 takes the word after it; of flags that are written together the last one decides.
_strata_wants() {
    _strata_option "$1"
    [[ ! $takes && $1 == -[!-]?* && $1 != *=* ]] || return 0
    local at
    for ((at = 1; at < ${#1}; at++)); do
        _strata_option "-${1:at:1}"
        if [[ $takes ]]; then
            [[ $((at + 1)) -eq ${#1} ]] || takes='' choices=()
            return 0
        fi
    done
}

# Finds the command, and what the last word is: sets takes, number (of the argument) and ended (after --).
_strata_read() {
    local index word known
    command=strata number=0 ended='' takes='' choices=()
    _strata_command
    for ((index = 1; index < ${#words[@]} - 1; index++)); do
        word=${words[index]}
        if [[ $takes ]]; then
            takes=''
        elif [[ ! $ended && $word == -- ]]; then
            ended=yes
        elif [[ ! $ended && $word == -?* ]]; then
            _strata_wants "$word"
        else
            for known in "${commands[@]}"; do
                [[ $word != "$known" ]] || command="$command $word" number=-1
            done
            _strata_command
            number=$((number + 1))
        fi
    done
}

# Offers those of the words that begin like the current one.
_strata_reply() {
    local reply
    for reply in "$@"; do
        [[ $reply == "$current"* ]] || continue
        reply=$attached$reply
        COMPREPLY[${#COMPREPLY[@]}]=${reply#"$cut"}
    done
}

# Model names, escaped unless the user has opened a quote; a path instead where no name fits.
_strata_models() {
    local name escaped plain=${current//\\/} quote=
    [[ $current != [\"\']* ]] || quote=yes plain=${current:1}
    while IFS= read -r name; do
        [[ $name == "$plain"* ]] || continue
        printf -v escaped %q "$name"
        [[ ! $quote ]] || escaped=$name
        current='' _strata_reply "$escaped"
    done < <(strata models list --names 2>/dev/null </dev/null)
    [[ ${COMPREPLY+set} ]] || _strata_files
}

# readline's own completion of files knows all about quotes, spaces and ~.
_strata_files() {
    if type compopt &>/dev/null; then
        compopt -o default 2>/dev/null
    else
        local name
        while IFS= read -r name; do
            COMPREPLY[${#COMPREPLY[@]}]=$name
        done < <(compgen -f -- "$current")
    fi
}

_strata() {
    local words cut command commands options takes choices number ended current attached=
    COMPREPLY=()
    _strata_words
    _strata_read
    current=${words[${#words[@]} - 1]}
    if [[ ! $takes && ! $ended && $current == -* ]]; then
        if [[ $current != *=* ]]; then
            _strata_reply "${options[@]}"
            return 0
        fi
        attached=${current%%=*}=
        _strata_option "${current%%=*}"
        current=${current#*=}
    elif [[ ! $takes ]]; then
        [[ $number -ne 0 ]] || _strata_reply "${commands[@]}"
        _strata_argument "$number"
    fi
    case $takes in
        choice) _strata_reply "${choices[@]}" ;;
        model) _strata_models ;;
        file) _strata_files ;;
    esac
    return 0
}

complete -F _strata strata
