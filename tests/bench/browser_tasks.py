"""The rules in the model's place, for tasks of one form or one list: what is done, from what the tools show and nothing else."""

import re

from browser_page import flat
from browser_rules import Unsolved, clickable, fields, is_there, match, one, ordinal, pick_date, rule, submit


@rule("click-button", "unicode-test")
def click_button(d):
    name = match(r'Click on the "\s*(.+?)\s*" button', d.page.text)[1]
    submit(d, name)


@rule("click-test", "click-test-2", "click-test-transfer")
def click_test(d):
    name = "ONE" if "ONE." in d.page.text else "Click Me!"
    submit(d, name)


@rule("click-button-sequence")
def sequence(d):
    d.click(one(d.page.all("button", name="ONE")))
    submit(d, "TWO")


@rule("click-link")
def link(d):
    d.finish(clickable(d.page, match(r'Click on the link "\s*(.+?)\s*"\.', d.page.text)[1]))


@rule("click-dialog", "click-dialog-2")
def dialog(d):
    name = match(r'"\s*(x|OK|Cancel)\s*"', d.page.text)[1]
    submit(d, "Close" if name == "x" else name)


@rule("click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer", "click-option")
def boxes(d):
    names = match(r"Select (.+?) and click Submit", d.page.text)[1]
    for name in [] if names == "nothing" else names.split(", "):
        d.click(one(d.page.all("checkbox", "radio", name=name), name))
    submit(d)


@rule("choose-list", "click-scroll-list")
def lists(d):
    names = match(r"Select (.+?) from the (scroll )?list", d.page.text)[1]
    d.select(one(d.page.all("combobox", "listbox"), "list"), names.split(", "))
    submit(d)


@rule("click-tab")
def tab(d):
    d.finish(one(d.page.all("tab", "link", name=match(r"Click on (Tab #\d)\.", d.page.text)[1]), "tab"))


@rule("click-tab-2", "click-tab-2-easy", "click-tab-2-medium", "click-tab-2-hard", "click-collapsible-2", "click-collapsible-2-nodelay")
def tabs(d):
    name = match(r'click on the link "\s*(.+?)\s*"\.', d.page.text)[1]
    for number in range(8):
        if found := is_there(d.page, name):
            return d.finish(found)
        tabs = d.page.all("tab")
        is_first_shown = len(tabs) and "collapsible" not in d.kind
        at = number + is_first_shown
        if at >= len(tabs):
            break
        d.click(tabs[at])
        if d.is_over():
            return None
    raise Unsolved(f"no tab has {name!r}")


@rule("click-collapsible", "click-collapsible-nodelay")
def section(d):
    d.click(one(d.page.all("tab"), "section"))
    submit(d)


@rule("click-menu")
def menu(d):
    path = match(r"Select (\S+(?:\s?>\s?\S+)*)", d.page.text)[1].split(">")
    for name, following in zip(path, path[1:]):
        d.hover(one(d.page.all("menuitem", name=name.strip()), name))
        d.until(lambda page: page.all("menuitem", name=following.strip()))
    d.finish(one(d.page.all("menuitem", name=path[-1].strip()), path[-1]))


@rule("click-widget")
def widget(d):
    kind = match(r'Click on a "\s*(\w+)\s*" widget', d.page.text)[1]
    if kind not in ("text", "textarea"):
        return d.finish(one(d.page.all(kind), kind))
    boxes = d.page.all("textbox")
    told = [box for box in boxes if ("multiline" in box.states) == (kind == "textarea")]
    return d.finish(one(told or boxes, kind))


@rule("focus-text", "focus-text-2")
def focus(d):
    number = re.search(r"the (\d)\w\w input", d.page.text)
    d.finish(fields(d.page)[int(number[1]) - 1 if number else 0])


@rule("enter-text", "enter-text-dynamic", "enter-text-2")
def enter(d):
    text = match(r'(?:Enter|Type) "\s*(.+?)\s*"', d.page.text)[1]
    text = text.upper() if "upper case" in d.page.text else text.lower() if "lower case" in d.page.text else text
    d.fill(one(fields(d.page)), text)
    submit(d)


@rule("enter-password")
def password(d):
    text = match(r'the password "\s*(.+?)\s*"', d.page.text)[1]
    for box in fields(d.page)[:2]:
        d.fill(box, text)
    submit(d)


@rule("login-user", "login-user-popup")
def login(d):
    user, secret = match(r'username "\s*(.+?)\s*" and the password "\s*(.+?)\s*"', d.page.text).groups()
    for at, text in enumerate((user, secret)):
        d.fill(fields(d.page)[at], text)
        if cancel := d.page.all("button", name="Cancel"):
            d.click(cancel[0])
            d.fill(fields(d.page)[at], text)
    submit(d, "Login" if d.page.all("button", name="Login") else "OK")


@rule("enter-date")
def enter_date(d):
    month, day, year = match(r"Enter (\d+)/(\d+)/(\d+)", d.page.text).groups()
    d.fill(one(d.page.all("date") or fields(d.page)), f"{year}-{month}-{day}")
    submit(d)


@rule("enter-time")
def enter_time(d):
    hour, minute, half = match(r"Enter (\d+):(\d+)\s*([AP])M", d.page.text).groups()
    hour = int(hour) % 12 + (12 if half == "P" else 0)
    d.fill(one(d.page.all("inputtime") or fields(d.page)), f"{hour:02}:{minute}")
    submit(d)


@rule("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
def choose_date(d):
    month, day, year = map(int, match(r"Select (\d+)/(\d+)/(\d+)", d.page.text).groups())
    d.click(one(fields(d.page)))
    pick_date(d, month, day, year)
    submit(d)


@rule("copy-paste", "copy-paste-2")
def copy(d):
    boxes = fields(d.page)
    number = re.search(r"from the (\d)\w\w text area", d.page.text)
    source = boxes[int(number[1]) - 1] if number else max(boxes, key=lambda it: len(it.value))
    target = boxes[-1] if number else min(boxes, key=lambda it: len(it.value))
    d.click(source)
    d.press("Control+a")
    d.press("Control+c")
    d.click(target)
    d.press("Control+v")
    submit(d)


@rule("find-word")
def find_word(d):
    number = ordinal(match(r"Find the (\d+)\w\w", d.page.text)[0])
    words = d.page.text.split('press "Submit".', 1)[1].split()
    d.fill(one(fields(d.page)), re.sub(r"[^a-zA-Z]+", "", words[number - 1]))
    submit(d)


@rule("scroll-text")
def last_word(d):
    boxes = fields(d.page)
    text = d.whole(boxes[0])
    d.fill(boxes[1], re.sub(r"[^a-zA-Z0-9]", "", text.split()[-1]))
    submit(d)


@rule("scroll-text-2")
def scroll(d):
    d.scroll(one(fields(d.page)), match(r"to the (bottom|top)", d.page.text)[1])
    submit(d)


@rule("sign-agreement")
def sign(d):
    name = re.search(r'the name "\s*(.+?)\s*" then press "(\w+)"', d.page.text)
    if not name:
        return submit(d, "Cancel")
    boxes = fields(d.page)
    d.scroll(boxes[0], "bottom")
    d.fill(boxes[1], name[1])
    return submit(d, name[2])


@rule("read-table")
def table(d):
    key = match(r"Enter the value of (.+?) into the text", d.page.text)[1]
    d.fill(one(fields(d.page)), beside(d.page, key))
    submit(d)


@rule("read-table-2")
def table_2(d):
    labels = [found[1] for node in d.page.nodes if (found := re.fullmatch(r"(.+):", flat(node.name)))]
    for label, box in zip(labels, fields(d.page)):
        d.fill(box, beside(d.page, label))
    submit(d)


def beside(page, key):
    """The cell behind the one that says a key."""
    names = [flat(node.name) for node in page.nodes if node.name]
    # The question may name it, too.
    at = max(at for at, name in enumerate(names) if name == key)
    return next(name for name in names[at + 1 :] if name != key)


@rule("simple-arithmetic")
def arithmetic(d):
    a, how, b = match(r"(\d+) ([-+x]) (\d+) =", d.page.text).groups()
    a, b = int(a), int(b)
    d.fill(one(fields(d.page)), str({"+": a + b, "-": a - b, "x": a * b}[how]))
    submit(d)


@rule("simple-algebra")
def algebra(d):
    a, how, b, is_ = match(r"(x|\d+) ([-+]) (x|\d+) = (\d+)", d.page.text).groups()
    known, is_ = int(b if a == "x" else a), int(is_)
    answer = is_ - known if how == "+" else is_ + known if a == "x" else known - is_
    d.fill(one(fields(d.page)), str(answer))
    submit(d)


@rule("text-transform")
def captcha(d):
    shown = match(r"press Submit\. (.+)", d.page.text)[1]
    letters = match(r"^((?:\S )*?\S+?) ?(?:Submit|$)", shown)[1]
    d.fill(one(fields(d.page)), letters.replace(" ", ""))
    submit(d)


@rule("guess-number")
def guess(d):
    low, high = 0, 9
    for _ in range(6):
        number = (low + high) // 2
        d.fill(one(fields(d.page)), str(number))
        d.click(one(d.page.all("button", name="Submit")))
        if d.is_over():
            return
        if f"higher than {number}" in d.page.text:
            low = number + 1
        else:
            high = number - 1


@rule("generate-number")
def generate(d):
    bound = re.search(r"(less|greater) than (\d+)", d.page.text)
    for _ in range(40):
        d.click(one(d.page.all("button", name="Generate")))
        number = next(int(node.name) for node in d.page.nodes if re.fullmatch(r"\d+", node.name))
        if bound:
            fits = number < int(bound[2]) if bound[1] == "less" else number > int(bound[2])
        else:
            fits = number % 2 == ("an odd" in d.page.text)
        if fits:
            return submit(d)
    raise Unsolved("no number fits")


@rule("find-greatest")
def greatest(d):
    cards = [(int(name), clickable(d.page, name)) for name in (flat(node.name) for node in d.page.nodes) if re.fullmatch(r"\d+", name)]
    if len(cards) < 3:
        raise Unsolved("the cards do not say their numbers")
    d.click(max(cards, key=lambda it: it[0])[1])
    submit(d)


@rule("odd-or-even")
def odd_or_even(d):
    numbers = [int(node.name) for node in d.page.nodes if re.fullmatch(r"-?\d+", node.name)]
    odd, even = d.page.all("button", name="Odd"), d.page.all("button", name="Even")
    for at, number in enumerate(numbers):
        d.click((odd if number % 2 else even)[at])
    submit(d)


@rule("buy-ticket")
def ticket(d):
    what = match(r"with the (cheapest|shortest|longest|most expensive)", d.page.text)[1]
    books = [node for node in d.page.all("button") if "Book" in node.name]
    prices = [int(match(r"\$(\d+)", node.name)[1]) for node in books]
    times = [int(h) * 60 + int(m) for h, m in re.findall(r"(\d+)h (\d+)m", d.page.text)]
    values = times if what in ("shortest", "longest") else prices
    best = max if what in ("longest", "most expensive") else min
    d.finish(books[values.index(best(values))])


@rule("multi-layouts", "multi-orderings")
def movies(d):
    genre, name, year = match(r"Search for (.+?) movies directed by (.+?) from year (\d+)", d.page.text).groups()
    values = {"Genre": genre, "Movie Genre": genre, "Director": name, "Director Name": name, "Year": year, "Released Date": year}
    label = rf"({'|'.join(sorted(values, key=len, reverse=True))}):?"
    said, texts = [], [""]
    for node in d.page.nodes:
        if node.role in ("textbox",) and node.ref:
            said.append(node)
            texts.append("")
        elif not node.says("Submit") and not node.says("Search"):
            texts[-1] = flat(f"{texts[-1]} {node.name}")
    is_before = re.search(label + "$", texts[0])
    for at, box in enumerate(said):
        found = re.search(label + "$", texts[at]) if is_before else match(r"^" + label, texts[at + 1])
        d.fill(box, values[found[1]])
    d.finish(one(filter(None, (is_there(d.page, it) for it in ("Submit", "Search", "Go!"))), "button"))


@rule("search-engine")
def search(d):
    text, number = match(r'to enter "\s*(.+?)\s*" and .* click the (\d+)\w\w search', d.page.text).groups()
    d.fill(one(fields(d.page)), text)
    d.click(one(d.page.all("button", name="Search")))
    place, at = divmod(int(number) - 1, 3)
    if place:
        d.click(one(d.page.all("link", name=str(place + 1)), "page"))
    results = [node for node in d.page.all("link") if node.name not in ("<", ">", "1", "2", "3")]
    d.finish(results[at])


@rule("phone-book")
def phone_book(d):
    name, what = match(r"Find (.+?) in the contact book and click on their (phone|email|address)", d.page.text).groups()
    form = {"phone": r"\d{3}-\d{3}-\d{4}", "email": r"\S+@\S+", "address": r"\d+ \D.*"}[what]
    for _ in range(5):
        if any(node.role == "heading" and node.says(name) for node in d.page.nodes):
            said = one((flat(node.name) for node in d.page.nodes if re.fullmatch(form, flat(node.name))), what)
            return d.finish(clickable(d.page, said))
        d.click(clickable(d.page, ">"))
    raise Unsolved("nobody is called so")


@rule("use-autocomplete", "use-autocomplete-nodelay")
def autocomplete(d):
    begin = match(r'starts with "\s*(.+?)\s*"', d.page.text)[1]
    end = re.search(r'ends with "\s*(.+?)\s*"', d.page.text)
    d.type(one(fields(d.page)), begin)
    fits = lambda it: it.name.startswith(begin) and (not end or it.name.endswith(end[1])) and it.role != "textbox"
    found = d.until(lambda page: [node for node in page.all() if fits(node)] or [node for node in page.nodes if fits(node)])
    d.click(clickable(d.page, found[0].name))
    submit(d)


@rule("use-spinner")
def spinner(d):
    d.fill(one(fields(d.page)), match(r"Select (-?\d+) with", d.page.text)[1])
    submit(d)
