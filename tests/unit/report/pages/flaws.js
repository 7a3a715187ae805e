// Returns what is wrong with how a page is drawn: text over text, cut text, pale text, a page wider than its window.
() => {
  const flaws = [];
  const texts = [];
  // The part of a box that is in sight: what scrolls has the rest elsewhere.
  const seen = (whole, holder) => {
    const box = { left: whole.left, right: whole.right, top: whole.top, bottom: whole.bottom };
    for (let at = holder; at; at = at.parentElement) {
      if (!["auto", "scroll"].includes(getComputedStyle(at).overflowX)) continue;
      const frame = at.getBoundingClientRect();
      box.left = Math.max(box.left, frame.left);
      box.right = Math.min(box.right, frame.right);
      box.top = Math.max(box.top, frame.top);
      box.bottom = Math.min(box.bottom, frame.bottom);
    }
    return box;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const holder = node.parentElement;
    if (!node.data.trim() || holder.closest("title, style") || !holder.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const whole of range.getClientRects()) {
      const box = seen(whole, holder);
      if (box.right - box.left > 0.5 && box.bottom - box.top > 0.5) texts.push({ text: node.data.trim().slice(0, 40), box, holder });
    }
  }
  if (texts.length < 10) flaws.push(`only ${texts.length} texts`);

  // What is sticky is over other text on purpose.
  const still = texts.filter((t) => !t.holder.closest(".map"));
  still.sort((a, b) => a.box.top - b.box.top);
  for (let i = 0; i < still.length; i++) {
    for (let j = i + 1; j < still.length && still[j].box.top < still[i].box.bottom; j++) {
      const [a, b] = [still[i].box, still[j].box];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1.5 && down > 4) flaws.push(`overlap: ${still[i].text} / ${still[j].text}`);
    }
  }

  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility() || element.closest("svg")) continue;
    const style = getComputedStyle(element);
    let scrolls = false;
    for (let at = element; at; at = at.parentElement) {
      scrolls ||= ["auto", "scroll"].includes(getComputedStyle(at).overflowX);
    }
    if (style.overflowX === "hidden" || style.textOverflow === "ellipsis") flaws.push(`hides text: ${element.tagName}`);
    const inline = style.display.startsWith("inline") || !element.clientWidth;
    if (!scrolls && !inline && element.scrollWidth > element.clientWidth + 2) {
      flaws.push(`cut: ${element.tagName} ${element.textContent.trim().slice(0, 40)}`);
    }
  }
  for (const text of document.querySelectorAll("svg text")) {
    const picture = text.ownerSVGElement.getBoundingClientRect();
    const box = text.getBoundingClientRect();
    if (box.left < picture.left - 1 || box.right > picture.right + 1 || box.bottom > picture.bottom + 1
        || box.top < picture.top - 1) flaws.push(`out of the picture: ${text.textContent}`);
  }

  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return numbers(getComputedStyle(document.body).backgroundColor);
  };
  const pale = new Set();
  for (const { text, holder } of texts) {
    const style = getComputedStyle(holder);
    const ink = light(numbers(holder.closest("svg") ? style.fill : style.color));
    const paper = light(ground(holder));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) pale.add(`contrast ${contrast.toFixed(1)}: ${text} (${holder.className.baseVal ?? holder.className})`);
  }
  flaws.push(...[...pale].slice(0, 5));
  if (document.documentElement.scrollWidth > innerWidth + 1) {
    flaws.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${innerWidth}`);
  }
  return flaws.slice(0, 20);
}
