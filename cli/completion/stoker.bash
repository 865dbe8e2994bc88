# Completion of the stoker command for bash. Made by: stoker help --completion bash
_stoker()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} words=

    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "check gen pack rescale index warm cache ls cat show verify stream run report version help" -- "$word"))
        return
    fi
    case $command:$before in
        pack:--to) words="tar series" ;;
        pack:--nan) words="error drop ffill mean zero" ;;
        pack:--scaler) words="standard minmax robust none" ;;
        pack:--scale) words="stored late" ;;
        rescale:--scaler) words="standard minmax robust none" ;;
        stream:--shuffle-order) words="auto sequential global local time" ;;
        stream:--last) words="auto short mask drop" ;;
        stream:--bad) words="raise replace" ;;
        stream:--ragged) words="error pad list flat" ;;
        stream:--resident) words="no auto yes" ;;
        stream:--decode) words="auto cpu gpu" ;;
        stream:--io) words="auto pread uring" ;;
        help:--completion) words="none bash zsh" ;;
    esac
    case $command:$COMP_CWORD:$word in
        *:-*) ;;
        gen:2:*) words="tensors series images audio video points" ;;
        cache:2:*) words="ls stat verify clear" ;;
        help:2:*) words="check gen pack rescale index warm cache ls cat show verify stream run report version help transforms" ;;
    esac
    if [ -z "$words" ] && [[ $word == -* ]]; then
        case $command in
            check) words=" --format --dtype --shape --fields --index --reindex --chunk-limit --cache --cache-size --ca --timeout --json --help -h" ;;
            gen) words=" --out -o --seed --force --samples --classes --shards --threads --shape --dtype --loose --entities --rows --features --csv --folder --format --size --quality --vary --subsampling --progressive --seconds --rate --channels --frames --fps --points --json --help -h" ;;
            pack) words=" --out -o --to --force --shard-size --shard-samples --prefix --entity --time --features --label --static --nan --scaler --fit-on --split --scale --window --horizon --stride --gap --append --threads --memory --format --dtype --shape --fields --index --reindex --chunk-limit --cache --cache-size --ca --timeout --json --help -h" ;;
            rescale) words=" --scaler --fit-on --json --help -h" ;;
            index) words=" --format --dtype --shape --fields --index --reindex --chunk-limit --window --horizon --stride --gap --min-history --pad --split --features --labels --cache --cache-size --ca --timeout --json --help -h" ;;
            warm) words=" --format --dtype --shape --fields --index --reindex --chunk-limit --window --horizon --stride --gap --min-history --pad --split --features --labels --cache --cache-size --ca --timeout --json --help -h" ;;
            cache) words=" --cache --json --help -h" ;;
            ls) words=" --limit --stat --format --dtype --shape --fields --index --reindex --chunk-limit --window --horizon --stride --gap --min-history --pad --split --features --labels --cache --cache-size --ca --timeout --json --help -h" ;;
            cat) words=" --key --format --dtype --shape --fields --index --reindex --chunk-limit --window --horizon --stride --gap --min-history --pad --split --features --labels --cache --cache-size --ca --timeout --json --help -h" ;;
            show) words=" --out -o --transform --plugin --field --samples --keys --shuffle --seed --epoch --columns --cell --format --dtype --shape --fields --index --reindex --chunk-limit --window --horizon --stride --gap --min-history --pad --split --features --labels --cache --cache-size --ca --timeout --json --help -h" ;;
            verify) words=" --threads --format --dtype --shape --fields --index --reindex --chunk-limit --window --horizon --stride --gap --min-history --pad --split --features --labels --cache --cache-size --ca --timeout --json --help -h" ;;
            stream) words=" --batch-size --global-batch-size --shuffle --shuffle-order --reach --seed --epoch --epochs --rank --world-size --last --bad --quarantine --ragged --transform --batch-transform --plugin --device --device-memory --resident --decode --threads --memory --depth --io --save-state --stop-after --resume --order --no-digest --trace --format --dtype --shape --fields --index --reindex --chunk-limit --window --horizon --stride --gap --min-history --pad --split --features --labels --cache --cache-size --ca --timeout --json --help -h" ;;
            run) words=" --report --trace --what-if --live --seconds --every-kernel --json --help -h" ;;
            report) words=" --out -o --json --help -h" ;;
            version) words=" --json --help -h" ;;
            help) words=" --completion --json --help -h" ;;
        esac
    fi
    [ -n "$words" ] && COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _stoker stoker
