//! Texts that mean harm, or that break what shows them: each begins with a mark by which it is found again.

/// As an agent may write it: the mark `m000`, and what follows.
pub struct Hostile {
    pub mark: String,
    pub text: String,
}

/// Longest line in the corpus, bytes.
const LINE_BYTES: usize = 1 << 20;

const MARKUP: &[&str] = &[
    "<script>window.ran=1</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "</script><script>window.ran=1</script>",
    "<scr<script>ipt>window.ran=1</scr</script>ipt>",
    "<img src=x onerror=window.ran=1>",
    "<img src=\"x\" onerror=\"window.ran=1\">",
    "<img/src='x'/onerror='window.ran=1'>",
    "<svg onload=window.ran=1>",
    "<svg><script>window.ran=1</script></svg>",
    "<svg><animate onbegin=window.ran=1 attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.ran=1>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "<iframe src=javascript:parent.ran=1></iframe>",
    "<object data=javascript:window.ran=1>",
    "<embed src=javascript:window.ran=1>",
    "<body onload=window.ran=1>",
    "<details open ontoggle=window.ran=1>",
    "<input autofocus onfocus=window.ran=1>",
    "<marquee onstart=window.ran=1>",
    "<video><source onerror=window.ran=1></video>",
    "<a href=javascript:window.ran=1>click</a>",
    "<a href='data:text/html,<script>window.ran=1</script>'>click</a>",
    "<form action=https://evil.example><button>Allow</button></form>",
    "</form><form action=/logout method=post>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>*{display:none!important}</style>",
    "<h1>Approved</h1>",
    "</p></li></ol></main></body></html>",
    "</title><script>window.ran=1</script>",
    "</textarea><script>window.ran=1</script>",
    "</select></option><script>window.ran=1</script>",
    "</code></pre><script>window.ran=1</script>",
    "<!-- <script>window.ran=1</script> -->",
    "--><script>window.ran=1</script>",
    "<![CDATA[<script>window.ran=1</script>]]>",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>&y;",
    "<template><script>window.ran=1</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=window.ran=1>'>",
    "<plaintext>",
    "<xmp><script>window.ran=1</script></xmp>",
    "<button formaction=javascript:window.ran=1>x</button>",
    "<div style='position:fixed;inset:0;background:red'>cover</div>",
    "<dialog open>Sign in again</dialog>",
    "<script type=module>import('data:text/javascript,window.ran=1')</script>",
    "<use href='data:image/svg+xml,<svg id=x onload=window.ran=1>'>",
    "<a id=toolhost name=toolhost>clobber</a><form id=document><input name=cookie></form>",
];

const QUOTES: &[&str] = &[
    "\" onmouseover=\"window.ran=1",
    "' onmouseover='window.ran=1",
    "\"><script>window.ran=1</script>",
    "'><script>window.ran=1</script>",
    "` onmouseover=window.ran=1 `",
    "\" autofocus onfocus=\"window.ran=1\" x=\"",
    "x\" style=\"position:fixed;inset:0",
    "&lt;script&gt;window.ran=1&lt;/script&gt;",
    "&#60;script&#62;window.ran=1&#60;/script&#62;",
    "&amp;lt;img src=x&amp;gt;",
    "\\x3cscript\\x3ewindow.ran=1\\x3c/script\\x3e",
    "\\u003cscript\\u003ewindow.ran=1\\u003c/script\\u003e",
    "%3Cscript%3Ewindow.ran=1%3C/script%3E",
    "'; DROP TABLE ask; --",
    "\" OR 1=1 --",
];

const TEMPLATES: &[&str] = &[
    "{{ 7 * 7 }}",
    "{% for x in y %}{{ x }}{% endfor %}",
    "{# comment #}",
    "${7*7}",
    "#{7*7}",
    "<%= 7 * 7 %>",
    "[[${7*7}]]",
    "{{constructor.constructor('window.ran=1')()}}",
    "$(touch /tmp/ran)",
    "`touch /tmp/ran`",
    "%s%s%s%n",
    "{0} {name!r}",
];

const ADDRESSES: &[&str] = &[
    "javascript:window.ran=1",
    "JaVaScRiPt:window.ran=1",
    "java\tscript:window.ran=1",
    "data:text/html;base64,PHNjcmlwdD53aW5kb3cucmFuPTE8L3NjcmlwdD4=",
    "vbscript:msgbox(1)",
    "//evil.example/x",
    "https://evil.example/\u{202e}moc.elpmaxe//:sptth",
    "https://good.example@evil.example/",
    "[click](javascript:window.ran=1)",
    "![x](https://evil.example/pixel.png)",
    "[x]: javascript:window.ran=1\n\n[x]",
    "<javascript:window.ran=1>",
    "file:///etc/passwd",
    "../../../../etc/passwd",
];

const MARKS: &[&str] = &[
    "\u{202e}txt.exe\u{202c} reversed",
    "\u{2066}isolate\u{2069} \u{2067}right\u{2069}",
    "\u{200f}right \u{200e}left \u{061c}arabic",
    "zero\u{200b}width\u{200c}join\u{200d}er\u{feff}",
    "\u{1b}[2J\u{1b}[31mred\u{1b}[0m",
    "\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{9b}31m eight bit \u{85} next line",
    "bell\u{7} back\u{8}space form\u{c}feed del\u{7f}",
    "null \u{0} within",
    "line\rover\rwritten",
    "one\r\ntwo\u{2028}three\u{2029}four",
    "Z\u{351}\u{36b}\u{343}\u{369}a\u{363}\u{30d}\u{300}l\u{35b}\u{30e}g\u{342}\u{301}o\u{346}\u{342}",
    "p\u{430}ypal \u{ff21}\u{ff22} look alike",
    "\u{e0041}\u{e0042} tags \u{fe0f}\u{20e3}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{1f3f4}",
    "\u{fffe}\u{ffff}\u{fdd0} no characters",
];

/// The whole corpus, more than a hundred texts.
pub fn hostile() -> Vec<Hostile> {
    let written = [MARKUP, QUOTES, TEMPLATES, ADDRESSES, MARKS].concat();
    let wide = ["x".repeat(LINE_BYTES), "<b>".repeat(LINE_BYTES / 3), "> ".repeat(10_000), "W".repeat(300)];
    let texts = written.into_iter().map(str::to_owned).chain(wide);
    texts
        .enumerate()
        .map(|(number, text)| {
            let mark = format!("m{number:03}");
            Hostile { text: format!("{mark} {text}"), mark }
        })
        .collect()
}
