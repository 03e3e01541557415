"""Numbers as people write them in other languages: magnitudes in words, units, grouped digits."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.grading import grade
from eval.grading.numerals import read_number
from eval.grading.scales import without_scales

SAYING = {
    "bn": "উত্তর হল {}",
    "de": "Die Antwort lautet {}.",
    "es": "La respuesta es {}.",
    "fr": "La réponse est {}.",
    "ja": "答えは{}です。",
    "ru": "Ответ: {}.",
    "sw": "Jibu ni {}.",
    "te": "సమాధానం {}.",
    "th": "คำตอบคือ {}",
    "zh": "答案是{}。",
}
SPELLED = {
    "{a}億{b}万{c}": ("ja", 10**8, 10**4, 1),
    "{a}億{b}千万{c}円": ("ja", 10**8, 10**7, 1),
    "{a}万{b}千{c}元": ("zh", 10**4, 10**3, 1),
    "{a}亿{b}百万{c}千人": ("zh", 10**8, 10**6, 10**3),
    "{a}কোটি {b} লাখ {c} হাজার টাকা": ("bn", 10**7, 10**5, 10**3),
    "{a} crore {b} lakh": ("en", 10**7, 10**5, 0),
    "{a} ล้าน {b} แสน {c} หมื่นบาท": ("th", 10**6, 10**5, 10**4),
}


@pytest.mark.parametrize("shape", SPELLED)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(10, 99), st.booleans())
@settings(deadline=None, max_examples=15)
def test_words_of_magnitude_multiply(shape: str, a: int, b: int, c: int, boxed: bool):
    language, *factors = SPELLED[shape]
    number = shape.format(a=a, b=b, c=c)
    total = sum(x * factor for x, factor in zip((a, b, c), factors, strict=True))
    said = SAYING.get(language, "The answer is {}.").format(number)
    output = rf"\boxed{{{number}}}" if boxed else said
    assert grade(output, str(total), language).correct is True
    for other in (total + 1, total * 10, a, c):
        assert grade(output, str(other), language).correct is False


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("2万", "20000"),
        ("1.2万", "12000"),
        ("1,200万", "12000000"),
        ("1.2万亿", "1200000000000"),
        ("2千5百万", "25000000"),
        ("3 万元", "30000元"),
        ("2 lakhs", "200000"),
        ("elfu 5", "5000"),
        ("5千克", "5千克"),
        ("2万千瓦", "20000千瓦"),
        ("5百分之", "5百分之"),
        ("3 พันธุ์", "3 พันธุ์"),
        ("5 lakhani", "5 lakhani"),
        ("1.000.000万", "1.000.000万"),
        ("七万", "七万"),
    ],
)
def test_digits_before_words_of_magnitude(text: str, digits: str):
    assert without_scales(text) == digits


UNITS = {
    "bn": ("টাকা", "ডলার", "টি আপেল", "শতাংশ"),
    "ja": ("円", "ドル", "個", "個のりんご", "つ"),
    "ru": ("рублей", "яблок"),
    "te": ("డాలర్లు", "రూపాయలు"),
    "th": ("บาท", "ดอลลาร์", "ลูก"),
    "zh": ("元", "个苹果"),
    "en": ("달러", "דולר", "ευρώ", "दिन", "دولار", "ዶላር", "დოლარი", "₹", "฿", "৳"),
}


@given(st.integers(2, 10**6), st.sampled_from([(k, u) for k, us in UNITS.items() for u in us]))
@settings(deadline=None)
def test_a_unit_of_any_script_is_no_error(value: int, unit: tuple[str, str]):
    language, word = unit
    for number in (f"{value} {word}", f"{value}{word}"):
        said = SAYING.get(language, "The answer is {}.").format(number)
        for output in (said, rf"\boxed{{{number}}}", rf"\boxed{{{value}\text{{ {word}}}}}"):
            assert grade(output, str(value), language).correct is True, output
            assert grade(output, str(value + 1), language).correct is False


@pytest.mark.parametrize(
    "text",
    ["2 ชั่วโมงครึ่ง", "3 সাড়ে", "5αβ", "5 αβ", "5б", "18ではない", "18 নয়", "5 或 6", "5 か 6"],
)
def test_words_that_change_a_value_are_no_unit(text: str):
    assert read_number(text) is None


@pytest.mark.parametrize(("text", "value"), [("2時間半", 2.5), ("半径は5センチ", 5), ("一半", 0.5)])
def test_half_of_a_unit_counts(text: str, value: float):
    number = read_number(text)
    assert number is not None
    assert float(number.value) == value


@pytest.mark.parametrize("language", ["de", "es", "fr", "ru"])
@given(st.integers(1000, 999_999))
@settings(deadline=None, max_examples=30)
def test_digits_grouped_in_the_english_way(language: str, value: int):
    number = f"{value:,}"
    said = SAYING[language].format(f"{number} $")
    for output in (said, rf"\boxed{{{number}}}", f"{number} $ - 1 = {number}\n{said}"):
        assert grade(output, str(value), language).correct is True
        assert grade(output, str(value / 1000), language).correct is False
    for shown in ("2,5 + 1", "0,125 + 1", "3,14159 + 2"):  # here a comma precedes decimals
        output = f"{shown}\n{said}"
        assert grade(output, str(value / 1000), language).correct is True
        assert grade(output, str(value), language).correct is False


BOUNDED = {
    "bn": ("{} এর বেশি", "{} এর কম"),
    "de": ("mehr als {}", "weniger als {}", "mindestens {}"),
    "es": ("más de {}", "menos de {}", "al menos {}"),
    "fr": ("plus de {}", "moins de {}", "au moins {}"),
    "ja": ("{}以上", "{}以下", "{}未満", "{}より大きい"),
    "ru": ("больше {}", "меньше {}"),
    "sw": ("zaidi ya {}", "chini ya {}"),
    "te": ("{} కంటే ఎక్కువ",),
    "th": ("มากกว่า {}", "น้อยกว่า {}"),
    "zh": ("{}以上", "{}以下", "大于{}", "超过{}"),
}
DENIED = {"bn": ("{} নয়",), "ja": ("{}ではありません",), "te": ("{} కాదు",), "th": ("ไม่ใช่ {}",)}
MULTIPLE = {
    "de": ("die Hälfte von {}", "das Doppelte von {}"),
    "es": ("la mitad de {}", "el doble de {}"),
    "fr": ("la moitié de {}", "le double de {}"),
    "ru": ("половина от {}",),
    "sw": ("nusu ya {}",),
}
HALF_MORE = {
    "es": ("{} y medio", "{} horas y media"),
    "fr": ("{} et demi", "{} heures et demie"),
    "ru": ("{} с половиной", "{} часа с половиной"),
    "sw": ("{} na nusu",),
}


@pytest.mark.parametrize("language", SAYING)
@given(st.integers(2, 99))
@settings(deadline=None, max_examples=10)
def test_a_bound_a_denial_or_a_multiple_is_not_the_number(language: str, n: int):
    assert grade(SAYING[language].format(n), str(n), language).correct is True
    others = [table.get(language, ()) for table in (BOUNDED, DENIED, MULTIPLE, HALF_MORE)]
    for shape in chain.from_iterable(others):
        said = SAYING[language].format(shape.format(n))
        assert grade(said, str(n), language).correct is False


@pytest.mark.parametrize("language", HALF_MORE)
@given(st.integers(1, 99))
@settings(deadline=None, max_examples=10)
def test_a_number_and_a_half_is_half_more(language: str, n: int):
    for shape in HALF_MORE[language]:
        said = SAYING[language].format(shape.format(n))
        assert grade(said, f"{n}.5", language).correct is True
