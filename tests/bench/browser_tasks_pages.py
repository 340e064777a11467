"""The rules for tasks that are pages of their own: sliders, shapes, trees, mail, posts, a terminal, flights."""

import re

from browser_page import flat
from browser_rules import Unsolved, clickable, fields, is_there, match, nameless, one, pick_date, rule, submit


def slide(d, handle, wanted, read):
    """Moves a slider by its keys."""
    step = None
    for _ in range(60):
        away = wanted - read(d.page)
        if away == 0:
            return
        if step is None and abs(away) > 6 or step and abs(away) >= step:
            before = read(d.page)
            d.press("PageUp" if away > 0 else "PageDown", handle)
            step = abs(read(d.page) - before) or 1000
        else:
            d.press("ArrowRight" if away > 0 else "ArrowLeft", handle)
    raise Unsolved("the slider does not get there")


def handles(page):
    told = page.all("slider") or [node for node in nameless(page.nodes, "slider-handle") if node.hint]
    # The handle is within the slider.
    return told or [node for node in nameless(page.nodes) if not nameless(page.inside(node))]


def numbers_of(page, goal):
    return [int(node.name) for node in page.nodes if re.fullmatch(r"-?\d+", flat(node.name)) and node.role != "slider"]


@rule("use-slider", "form-sequence")
def slider(d):
    goal = match(r"Select (-?\d+) with the slider(?:, click the (\d)\w\w checkbox)?", d.page.text)
    slide(d, one(handles(d.page), "slider"), int(goal[1]), lambda page: numbers_of(page, goal)[-1])
    if goal[2]:
        d.click(d.page.all("checkbox")[int(goal[2]) - 1])
    submit(d)


@rule("use-slider-2")
def sliders(d):
    wanted = [int(it) for it in match(r"\[([\d, ]+)\]", d.page.text)[1].split(",")]
    for at, value in enumerate(wanted):
        d.look()
        slide(d, handles(d.page)[at], value, lambda page: numbers_of(d.look(), None)[at])
    submit(d)


@rule("form-sequence-2")
def form_2(d):
    radio, number, box = match(r'the (\d)\w\w radio button and enter the number "(-?\d+)" into the (\d)', d.page.text).groups()
    d.click(d.page.all("radio")[int(radio) - 1])
    d.fill(d.page.all("textbox")[int(box) - 1], number)
    submit(d)


@rule("form-sequence-3")
def form_3(d):
    size, name = match(r'Choose (.+?) from the dropdown, then click the button labeled "(\w+)"', d.page.text).groups()
    lists = d.page.all("combobox", "listbox")
    if lists:
        d.select(lists[0], [size])
    else:
        d.click(one(nameless(d.page.nodes), "list"))
        d.click(clickable(d.page, size))
    submit(d, name)


@rule("grid-coordinate")
def grid(d):
    x, y = map(int, match(r"\((-?\d),(-?\d)\)", d.page.text).groups())
    for node in d.page.all():
        found = re.search(r"cx=(\d+) cy=(\d+)", node.hint)
        if found and ((int(found[1]) - 75) / 30, (75 - int(found[2])) / 30) == (x, y):
            return d.finish(node)
    raise Unsolved("the points do not say where they are")


@rule("ascending-numbers")
def ascending(d):
    d.click(clickable(d.page, "1"))
    for _ in range(4):
        d.click(one([node for node in d.page.all() if node.hint.startswith("rect")], "square"))


COLORS = ["red", "green", "blue", "aqua", "black", "magenta", "yellow"]


def shapes(page):
    """Shapes as (node, size, colour, type, text)."""
    for node in page.all():
        found = re.match(r"(circle|rect|polygon|text)\b", node.hint)
        if not found:
            continue
        get = lambda key: (re.search(rf"\b{key}=(\S+)", node.hint) or [None, ""])[1]
        kind = {"circle": "circle", "rect": "rectangle", "polygon": "triangle"}.get(found[1])
        size = {"circle": get("r") == "10", "rect": get("width") == "20", "text": get("font-size") == "20px"}.get(found[1])
        if found[1] == "polygon":
            points = [float(it.split(",")[0]) for it in re.search(r"points=(.*)", node.hint)[1].split() if "," in it]
            size = max(points) - min(points) == 20
        said = kind or flat(node.name)
        yield node, "large" if size else "small", get("fill"), "shape" if kind else "digit" if said.isdigit() else "letter", said


def fits(shape, words):
    _, size, color, kind, text = shape
    left = [word for word in words if word not in ("large", "small") and word not in COLORS]
    return (
        all(word == size for word in words if word in ("large", "small"))
        and all(word == color for word in words if word in COLORS)
        and all(word in ("item", kind, text) for word in left)
    )


@rule("click-shape")
def click_shape(d):
    words = match(r"Click on a (\S+(?: \S+)*)", d.page.text)[1]
    words = re.match(r"(?:(?:large|small) )?(?:(?:%s) )?\S+" % "|".join(COLORS), words)[0].split()
    d.finish(one((shape[0] for shape in shapes(d.page) if fits(shape, words)), "shape"))


@rule("count-shape")
def count_shape(d):
    words = match(r"How many (.+?)s are there", d.page.text)[1].split()
    count = sum(fits(shape, words) for shape in shapes(d.page))
    submit(d, str(count))


@rule("navigate-tree")
def tree(d):
    name = match(r'named "\s*(.+?)\s*"\.', d.page.text)[1]
    opened = set()
    for _ in range(12):
        if found := is_there(d.page, name):
            return d.finish(found)
        closed = [node for node in nameless(d.page.nodes, "hitarea") if node.ref not in opened]
        opened.add(one(closed, "folder").ref)
        d.click(closed[0])
        d.look()
    raise Unsolved(f"{name} does not come")


def posts(page, user):
    """What stands behind each text that names a user, up to the next post."""
    starts = [at for at, node in enumerate(page.nodes) if re.search(r"(^|\s)@\S", flat(node.name)) and "button" not in node.name]
    for at, following in zip(starts, starts[1:] + [len(page.nodes)]):
        if re.search(rf"(^|\s){re.escape(user)}(\s|$)", flat(page.nodes[at].name)):
            yield page.nodes[at + 1 : following]


ICONS = ["Reply", "Retweet", "Like"]


def icon(post, name, number):
    found = nameless(post, name)
    return found[0] if found and found[0].hint else found[number]


@rule("social-media")
def social(d):
    user, what = match(r'For the user (@\S+?) ?, click on the "\s*(.+?)\s*" button', d.page.text).groups()
    post = one(posts(d.page, user), user)
    if what in ICONS:
        return d.finish(icon(post, what.lower(), ICONS.index(what)))
    d.click(icon(post, "more", 3))
    item = one((node.name for node in d.page.nodes if flat(node.name).startswith(what)), what)
    return d.finish(clickable(d.page, item))


@rule("social-media-all", "social-media-some")
def socials(d):
    what, count, user = match(r'Click the "\s*(\w+)\s*" button on (all|\d+) posts? by (@\S+) and', d.page.text).groups()
    found = list(posts(d.page, user))
    for post in found if count == "all" else found[: int(count)]:
        d.click(icon(post, what.lower(), [*ICONS, "Share"].index(what)))
    submit(d)


@rule("order-food")
def food(d):
    by_kind = re.search(r"Order (\d+) items that are ([\w-]+)", d.page.text)
    names = [] if by_kind else [flat(it) for it in match(r"one of each item: (.+?) Appetizers", d.page.text)[1].split(",")]
    before, group = [], []
    for node in d.page.nodes:
        if not node.says("+"):
            group.append(flat(node.name))
            continue
        if group:
            before.append((clickable_at(d.page, node), group))
        group = []
    for plus, said in before:
        if by_kind and by_kind[2] in said:
            for _ in range(int(by_kind[1])):
                d.click(plus)
            break
        if any(name in said for name in names):
            d.click(plus)
    submit(d, "Order!")


def clickable_at(page, node):
    if node.ref:
        return node
    at = next(i for i, it in enumerate(page.nodes) if it is node)
    return one((outer for outer in reversed(page.nodes[:at]) if outer.depth < node.depth and outer.ref), node.name)


@rule("terminal")
def terminal(d):
    ending = re.search(r"extension \.(\S+)", d.page.text)
    d.type(one(fields(d.page)), "ls")
    d.press("Enter")
    text = d.look().text
    files = match(r"user\$ ls (.+?) user\$", text)[1].split()
    wanted = [it for it in files if (it.endswith("." + ending[1]) if ending else "." not in it)]
    d.type(one(fields(d.page)), f"rm {one(wanted, 'file')}")
    d.press("Enter")
    d.is_over()


@rule("drag-items")
def drag(d):
    name, where = match(r"Drag (\S+) (to the (?:top|bottom)|(?:up|down) by one|to the \d)", d.page.text).groups()
    items = d.page.all("listitem")
    at = next(i for i, item in enumerate(items) if item.says(name) or any(it.says(name) for it in d.page.inside(item)))
    if where[-1].isdigit():
        to = int(where[-1]) - 1
    else:
        to = {"to the top": 0, "to the bottom": len(items) - 1, "up by one": at - 1, "down by one": at + 1}[where]
    d.drag(items[at], items[to])


@rule("book-flight", "book-flight-nodelay")
def flight(d):
    what, start, end, month, day, year = match(
        r"Book the (cheapest|shortest) one-way flight from: (.+?) to: (.+?) on (\d+)/(\d+)/(\d+)", d.page.text
    ).groups()
    for at, place in enumerate((start, end)):
        d.type(fields(d.page)[at], place)
        fits = lambda node: place in node.name and "(" in node.name and "Book" not in node.name and node.role != "textbox"
        found = d.until(lambda page: [node for node in page.nodes if fits(node)])
        d.click(clickable(d.page, found[0].name))
    d.click(fields(d.page)[2])
    pick_date(d, int(month), int(day), int(year))
    d.click(one(d.page.all("button", name="Search")))
    d.look()
    books = [node for node in d.page.all("button") if "Book flight" in node.name]
    prices = [int(match(r"\$(\d+)", node.name)[1]) for node in books]
    times = [int(h) * 60 + int(m) for h, m in re.findall(r"(\d+)h (\d+)m", d.page.text)]
    values = times if what == "shortest" else prices
    d.finish(books[values.index(min(values))])


def threads(page, name):
    """The mail of a sender, and what is in it."""
    for node in page.all():
        inside = page.inside(node)
        said = flat(" ".join([node.name, *(it.name for it in inside)]))
        if said.startswith(name + " ") and "Primary" not in said and len(said) < 120:
            return node, inside
    raise Unsolved(f"no mail of {name}")


@rule("email-inbox", "email-inbox-delete", "email-inbox-forward", "email-inbox-important", "email-inbox-noscroll", "email-inbox-reply", "email-inbox-star-reply")
def mail(d):
    goal = match(r"Find the email by (\S+) and (reply to them with the text \"\s*(.+?)\s*\"\.|forward that email to (\S+?) ?\.|click the (trash|star) icon)", d.page.text)
    do_mail(d, goal[1], reply=goal[3], forward=goal[4], icon=goal[5])


def do_mail(d, name, reply=None, forward=None, icon=None):
    node, inside = threads(d.page, name)
    if icon:
        found = nameless(inside, icon)
        return d.finish(found[0] if found and found[0].hint else found[-2 if icon == "trash" else -1])
    d.click(node)
    d.click(clickable(d.page, "Reply" if reply else "Forward"))
    d.look()
    boxes = fields(d.page)
    d.fill(boxes[-1] if reply else boxes[-2], reply or forward)
    bar = nameless(d.page.nodes, "send")
    return d.finish(one(bar if bar and bar[0].hint else bar[1:], "button that sends"))
