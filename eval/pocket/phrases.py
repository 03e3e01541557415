"""The words and sentences of the pocket world's stories, in English and Chinese.

Stories of the four suites have distractors of the first four kinds.
"""

from dataclasses import dataclass

# The operator of each phrase of an event, and of each relation between two people.
EVENTS = ("+", "+", "+", "+", "-", "-", "-", "-", "*", "*", "/", "/")
RELATIONS = ("+", "+", "-", "-", "*", "*")


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """The names, things and sentences of one language; `stories` fills in the braces."""

    names: tuple[str, ...]
    things: tuple[str, ...]
    openings: dict[str, str]
    events: tuple[str, ...]
    relations: tuple[str, ...]
    distractors: tuple[str, ...]
    units: dict[int, str]
    now: tuple[str, ...]
    together: str
    joint: str


ENGLISH = Phrases(
    names=("Tom", "Ann", "Ben", "Lily", "Sam", "Mia", "Jack", "Rosa"),
    things=("apples", "books", "coins", "cards", "eggs", "pens", "stamps", "shells"),
    openings={
        "hoard": "{name} has {n[0]} {thing}.",
        "rate": "{name} gets {n[0]} {thing} a day for {n[1]} days.",
        "basket": "{name} has {n[0]} boxes of {n[1]} {thing} and {n[2]} bags of {n[3]}.",
        "share": "{name} had {n[0]} {thing} and kept {n[1]}/{n[2]} of them.",
        "compared": "{name} has {n[0]} {thing}.",
    },
    events=(
        "{name} buys {a} more.",
        "A friend gives {name} {a}.",
        "{name} finds {a} more.",
        "{name} wins {a} in a game.",
        "{name} gives away {a}.",
        "{name} loses {a} of them.",
        "{name} sells {a} of them.",
        "{name} breaks {a} of them.",
        "Then the number grows to {k} times as many.",
        "{name} then has {k} times as many.",
        "{name} splits them equally into {a} boxes and keeps one box.",
        "{name} shares them equally among {a} people and keeps one share.",
    ),
    relations=(
        "{other} has {a} more than {name}.",
        "{other} owns {a} {thing} beyond those of {name}.",
        "{other} has {a} fewer than {name}.",
        "{other} is {a} {thing} short of {name}.",
        "{other} has {a} times as many as {name}.",
        "{other} owns {a} times the {thing} of {name}.",
    ),
    distractors=(
        "{other} has {d} {thing}.",
        "{name} is {d} years old.",
        "One of the {thing} costs ${d}.",
        "It is {d} o'clock.",
        "{other} is {d} years old.",
    ),
    units={1: "{a}", 2: "{a} pairs", 3: "{a} sets of three"},
    now=("How many {thing} does {name} have now?", "How many {thing} are left with {name}?"),
    together="How many {thing} do {name} and {other} have together?",
    joint=" ",
)

CHINESE = Phrases(
    names=("小明", "小红", "小刚", "小丽", "小华", "小芳", "小军", "小美"),
    things=("苹果", "书", "硬币", "卡片", "鸡蛋", "铅笔", "邮票", "贝壳"),
    openings={
        "hoard": "{name}有{n[0]}个{thing}。",
        "rate": "{name}每天得到{n[0]}个{thing}，一共{n[1]}天。",
        "basket": "{name}有{n[0]}盒{thing}，每盒{n[1]}个，还有{n[2]}袋，每袋{n[3]}个。",
        "share": "{name}原来有{n[0]}个{thing}，留下了其中的{n[1]}/{n[2]}。",
        "compared": "{name}有{n[0]}个{thing}。",
    },
    events=(
        "{name}又买了{a}。",
        "朋友送给{name}{a}。",
        "{name}又找到了{a}。",
        "{name}在游戏中赢了{a}。",
        "{name}送出了{a}。",
        "{name}丢了{a}。",
        "{name}卖掉了{a}。",
        "{name}弄坏了{a}。",
        "后来数量变成原来的{k}倍。",
        "后来{name}的数量是之前的{k}倍。",
        "{name}把它们平均装进{a}盒子，只留下一盒。",
        "{name}把它们平均分给{a}人，自己拿一份。",
    ),
    relations=(
        "{other}比{name}多{a}个。",
        "{other}的{thing}超出{name}{a}个。",
        "{other}比{name}少{a}个。",
        "{other}的{thing}不足{name}{a}个。",
        "{other}的数量是{name}的{a}倍。",
        "{other}的{thing}相当于{name}的{a}倍。",
    ),
    distractors=(
        "{other}有{d}个{thing}。",
        "{name}今年{d}岁。",
        "每个{thing}{d}元。",
        "现在是{d}点钟。",
        "{other}今年{d}岁。",
    ),
    units={1: "{a}个", 2: "{a}对", 3: "{a}组，每组三个"},
    now=("{name}现在有多少个{thing}？", "{name}还有多少个{thing}？"),
    together="{name}和{other}一共有多少个{thing}？",
    joint="",
)

PHRASES = {"en": ENGLISH, "zh": CHINESE}
