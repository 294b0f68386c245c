shopt -s nullglob dotglob
declare -A known gits
say() { # as it is called: where it leads is found outside
    case "$2" in /*) printf '%s\0%s\0' "$1" "$2" ;; *) printf '%s\0%s/%s\0' "$1" "$PWD" "$2" ;; esac
}
links_in() { # each of these folders, and the links in it
    local folder entry
    for folder; do
        for entry in "$folder" "$folder"/*; do
            [ ! -L "$entry" ] || say whole "$entry"
        done
    done
}
todo=()
visit() { # the working tree at the folder $1, later and once
    cd -- "$1" 2>/dev/null || return
    [ -z "${known[$PWD]-}" ] || return
    known[$PWD]=1
    todo+=("$PWD")
}
ask() { # git of this working tree
    if [ -n "$own_git" ]; then GIT_DIR=$own_git git "$@"; else git "$@"; fi
}
settings() { # of the repository at hand
    local origin item file value
    last= failed=
    while IFS= read -r -d '' origin && IFS= read -r -d '' item; do
        [ "$origin" != failed ] || failed=1
        case "$item" in core.hookspath|core.hookspath$'\n'*) own_hooks=1 ;; esac
        case "$origin" in file:*) ;; *) continue ;; esac
        if [ "$origin" != "$last" ]; then
            last=$origin
            file=${origin#file:}
            case "$file" in /*) ;; *) file=$PWD/$file ;; esac
            say setting "$file"
        fi
        case "$item" in
            include.path$'\n'*|includeif.*.path$'\n'*)
                value=${item#*$'\n'}
                case "$value" in '~'*|'%('*) say home "$value"; continue ;; /*) ;; *) value=${file%/*}/$value ;; esac
                if [ "$with" = --includes ]; then say setting "$value"; else say include "$value"; fi ;;
        esac
    done < <(GIT_DIR=$git_dir git config --list --show-origin $with -z 2>/dev/null || printf 'failed\0\0')
}
refused() { # why git says nothing of a repository that is there
    printf 'refused\0%s: %s\0' "$PWD" "$1"
}
unreadable() { # what git may not read here, if that is why it says nothing; or for what else it gives up
    local said
    said=$(ask rev-parse --git-dir 2>&1 >/dev/null)
    # A warning before git gives up, or what it gives up for.
    case "$said" in *": unable to access '"*"': "*)
        said=${said#*"access '"}
        say unreadable "${said%%"': "*}" ;;
    # What lies around the workspace is closed here, and git is told where each repository around it is.
    *"error opening '$top/"*) refused "${said%%$'\n'*}" ;;
    *"error opening '"*) ;;
    # Nobody's git takes it for one.
    ''|*'not a git repository'*|*'invalid gitfile format'*|*'not a gitdir'*) ;;
    *) refused "${said%%$'\n'*}" ;;
    esac
}
named_in() { # the file $1, as git reads it: without the line ends at its end; sets elsewhere
    elsewhere=
    [ -f "$1" ] || return
    IFS= read -r -d '' -n 65536 elsewhere <"$1"
    while :; do case "$elsewhere" in *$'\n'|*$'\r') elsewhere=${elsewhere%?} ;; *) break ;; esac; done
    [ -n "$elsewhere" ]
}
leads_to() { # the folder $1 is or would be a repository's, and may share another's
    say git "$1"
    if named_in "$1/commondir"; then
        case "$elsewhere" in /*) say git "$elsewhere" ;; *) say git "$1/$elsewhere" ;; esac
    fi
}
of_repository() { # at the folder $1; sets common, index and tree
    local git_dir hooks elsewhere last failed with item value paths own_hooks=
    common= index= tree=
    cd -- "$1" 2>/dev/null || return
    # Also where nothing is there yet, and git therefore says nothing: whatever comes there becomes this repository.
    if [ -n "$own_git" ]; then
        leads_to "$own_git"
    elif named_in .git; then
        case "$elsewhere" in 'gitdir: '*) leads_to "${elsewhere#gitdir: }" ;; esac
    fi
    mapfile -t paths < <(ask rev-parse --path-format=absolute --git-dir --git-common-dir --git-path index --show-toplevel 2>/dev/null)
    if [ "${#paths[@]}" -lt 3 ] || [ "${#paths[@]}" -gt 4 ]; then # no repository, or a name with a line end
        paths=()
        for item in --git-dir --git-common-dir '--git-path index'; do
            value=$(ask rev-parse --path-format=absolute $item 2>/dev/null) || { unreadable; return; }
            paths+=("$value")
        done
        paths+=("$(ask rev-parse --path-format=absolute --show-toplevel 2>/dev/null)")
    fi
    git_dir=${paths[0]} common=${paths[1]} index=${paths[2]} tree=${paths[3]-}
    say git "$common"
    say setting "$git_dir/config.worktree" # it may come later
    leads_to "$git_dir"
    # What hooks and their folder are relative to; without a working tree, that is the repository.
    cd -- "${tree:-$git_dir}" 2>/dev/null || tree=
    say tree "$PWD"
    with=--includes
    settings
    # One of the included files cannot be read from here: they are read outside.
    [ -z "$failed" ] || { with=--no-includes; settings; }
    [ -z "$failed" ] || refused 'its settings cannot be read'
    hooks=$common/hooks
    [ -z "$own_hooks" ] || hooks=$(GIT_DIR=$git_dir git config $with --type=path --get core.hooksPath 2>/dev/null) || hooks=$common/hooks
    say hooks "$hooks"
    say hooks "$common/hooks"
    links_in "$common" "$git_dir" "$common/info" "$hooks" "$common/hooks"
}
LOOKED_FOR_S=6 # seconds in which trees are compared; a repository in which that takes longer says it in files
briefly() { # git of this working tree, ended after a while
    if [ -n "$own_git" ]; then GIT_DIR=$own_git timeout "$LOOKED_FOR_S" git "$@"; else timeout "$LOOKED_FOR_S" git "$@"; fi
}
tips() { # the commits that the newest branches, tags and stashes lead to
    local peeled='%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)'
    ask for-each-ref --count=500 --sort=-committerdate --format='%(objectname)' refs/heads refs/remotes
    ask log -g -n 100 --format='%H%n%P' refs/stash | tr ' ' '\n' | grep .
    ask for-each-ref --count=100 --sort=-creatordate --format="$peeled" refs/tags
}
compared() { # the commits that are told, each with its parents or with the one that is told beside it
    briefly diff-tree --stdin -m -r --root --raw --no-commit-id --no-renames --ignore-submodules=none 2>/dev/null
}
one_to_the_next() { # of these commits: each beside the one before it
    local tip last=
    while read -r tip; do
        [ -z "$last" ] || printf '%s %s\n' "$tip" "$last"
        last=$tip
    done
}
submodules_in() { # what `diff-tree` and `ls-tree` tell, a line each: the paths of submodules, each ended by NUL
    local path
    grep -a '^160000 \|^:160000 \|^:[0-7]* 160000 ' | while IFS= read -r path; do
        path=${path#*$'\t'}
        case "$path" in '"'*) # as git quotes names
            path=${path#?} path=${path%?} path=${path//%/%%}
            printf -v path "$path" ;;
        esac
        printf '%s\0' "$path"
    done
}
named_by_files() { # of the commits that are told: the paths that their `.gitmodules` name, each ended by NUL
    local blob item
    sed 's/$/:.gitmodules/' | ask cat-file --batch-check='%(objectname)' 2>/dev/null | grep -v ' ' | sort -u |
        while read -r blob; do ask config -z --blob "$blob" --get-regexp '^submodule\..*\.path$' 2>/dev/null; done |
        while IFS= read -r -d '' item; do printf '%s\0' "${item#*$'\n'}"; done
}
in_branches() { # where other commits have submodules: paths, each ended by NUL
    local item all followed=
    while IFS= read -r -d '' item; do
        followed=1
        # One that was taken out is still in the settings; mostly it is called after its place.
        case "$item" in submodule.?*.url|submodule.?*.active)
            item=${item#submodule.}
            printf '%s\0' "${item%.*}" ;;
        esac
    done < <(ask config -z --name-only --get-regexp '^submodule[.]' 2>/dev/null)
    mapfile -t all < <(tips 2>/dev/null)
    # All that the newest has, and what differs from one to the next: far less than all that each has.
    [ "${#all[@]}" -eq 0 ] || briefly ls-tree -r --full-tree "${all[0]}" 2>/dev/null | submodules_in
    printf '%s\n' "${all[@]}" | one_to_the_next | compared | submodules_in
    # It takes long, or the clone lacks folders.
    [ "${PIPESTATUS[2]}" -eq 0 ] || printf '%s\n' "${all[@]}" | named_by_files
    # Git enters one of a commit that it fetches only if the settings say that submodules are followed.
    if [ -n "$followed" ]; then
        ask rev-list --all --max-count=5000 2>/dev/null | compared | submodules_in
        [ "${PIPESTATUS[1]}" -eq 0 ] || ask rev-list --all --max-count=5000 2>/dev/null | named_by_files
    fi
}
DEPTH_MAX=100 # of folders: each on the way to a submodule is held
could_be() { # whether the folder $1 below the tree is none, or one through no link
    local above=$tree part rest=$1/
    # No file system has such a name.
    [ "${#1}" -lt 4000 ] || return
    part=${1//[^\/]/}
    if [ "${#part}" -gt "$DEPTH_MAX" ]; then
        refused "a branch, tag or stash has a submodule more than $DEPTH_MAX folders deep, at \`${1:0:40}…\`"
        return 1
    fi
    case "/$1/" in */../*|*/./*|*//*|*/.git/*) return 1 ;; esac
    while [ -n "$rest" ]; do
        part=${rest%%/*} rest=${rest#*/} above=$above/$part
        [ "${#part}" -lt 256 ] || return
        if [ -L "$above" ] || { [ -e "$above" ] && [ ! -d "$above" ]; }; then return 1; fi
    done
}
top=$PWD
visit .
while [ "$#" -gt 1 ]; do # repositories around this folder
    gits[$1]=$2
    visit "$1"
    shift 2
done
n=0
while [ "$n" -lt "${#todo[@]}" ] && [ "$n" -lt 1000 ]; do
    at=${todo[n]}
    n=$((n + 1))
    own_git=${gits[$at]-}
    of_repository "$at"
    [ -n "$index" ] || continue
    say read "$at"
    say index "$index"
    [ -z "$tree" ] || visit "$tree"
    if [ -d "$common/worktrees" ]; then
        while IFS= read -r -d '' line; do
            case "$line" in 'worktree '*)
                say git "${line#worktree }/.git"
                visit "${line#worktree }" ;;
            esac
        done < <(cd -- "$at" && ask worktree list --porcelain -z 2>/dev/null)
    fi
    [ -n "$tree" ] && cd -- "$tree" || continue
    while IFS= read -r -d '' entry; do
        inner=$tree/${entry#*$'\t'}
        say git "$inner/.git"
        [ ! -e "$inner/.git" ] || visit "$inner"
    done < <(cd -- "$at" && ask ls-files --full-name --stage -z -- "$tree" 2>/dev/null | grep -za '^160000 ')
    # A fetch, or a checkout of another commit, enters what stands in the place of a submodule that this one does not have.
    while IFS= read -r -d '' entry; do
        ! could_be "$entry" || say branched "$tree/$entry/.git"
    done < <(cd -- "$at" && in_branches | sort -zu)
done
printf 'done\0.\0'
