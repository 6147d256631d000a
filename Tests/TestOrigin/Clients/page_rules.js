// SPDX-License-Identifier: Apache-2.0
// Rules of accessibility that the browser's own tree of names and roles does not cover. An expression: the faults.
(() => {
  const faults = [];
  const all = [...document.querySelectorAll("body *")];
  const name = node => node.localName + (node.id ? `#${node.id}` : node.classList[0] ? `.${node.classList[0]}` : "");
  const isClipped = node => node && (getComputedStyle(node).clipPath !== "none" || isClipped(node.parentElement));
  const isVisible = node =>
    node.checkVisibility({ visibilityProperty: true }) && !node.closest(".skip") && !isClipped(node);

  // One document (WCAG 1.3.1, 2.4.2, 2.4.6, 3.1.1).
  if (!document.documentElement.lang) faults.push("the document has no language");
  if (!document.title) faults.push("the document has no title");
  for (const one of ["h1", "main"]) {
    if (document.querySelectorAll(one).length !== 1) faults.push(`not one ${one}`);
  }
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    if (!heading.checkVisibility()) continue;
    const next = Number(heading.localName[1]);
    if (next > level + 1) faults.push(`${name(heading)} comes after h${level}`);
    level = next;
  }

  // References (4.1.2).
  const ids = all.map(node => node.id).filter(Boolean);
  ids.forEach((id, place) => { if (ids.indexOf(id) < place) faults.push(`two elements are #${id}`); });
  for (const node of all) {
    for (const attribute of ["aria-labelledby", "aria-describedby", "for"]) {
      for (const id of (node.getAttribute(attribute) ?? "").split(/\s+/).filter(Boolean)) {
        if (!document.getElementById(id)) faults.push(`${attribute} of ${name(node)} names #${id}`);
      }
    }
    if (node.matches("a[href^='#']") && !document.getElementById(node.hash.slice(1))) {
      faults.push(`the link ${node.hash} leads nowhere`);
    }
    if (node.tabIndex > 0) faults.push(`${name(node)} has a place of its own in the order of the keyboard`);
    if (node.tabIndex === 0 && node.closest("[aria-hidden=true]")) faults.push(`${name(node)} is hidden and has focus`);
  }

  // Contrast (1.4.3, 1.4.11).
  const channels = text => text.match(/[\d.]+/g).map(Number);
  const luminance = color => color.slice(0, 3).reduce((sum, value, place) => {
    const part = value / 255;
    return sum + [.2126, .7152, .0722][place] * (part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  }, 0);
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + .05) / (low + .05);
  };
  const background = node => {
    for (let at = node; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if ((color[3] ?? 1) === 1) return color;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || node.matches("script, style, noscript, option") || !isVisible(node)) continue;
    const style = getComputedStyle(node);
    const color = channels(node.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const size = parseFloat(style.fontSize);
    const wanted = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const found = contrast(color, background(node));
    if (found < wanted) faults.push(`"${text.slice(0, 30)}" has a contrast of ${found.toFixed(2)}`);
  }
  for (const node of document.querySelectorAll("button, input, select")) {
    if (!isVisible(node)) continue;
    const style = getComputedStyle(node);
    const around = background(node.parentElement);
    const found = Math.max(contrast(channels(style.borderTopColor), around), contrast(background(node), around));
    if (found < 3) faults.push(`the edge of ${name(node)} has a contrast of ${found.toFixed(2)}`);
  }

  // Size of targets (2.5.8), and nothing that is cut off at the side (1.4.10).
  for (const node of document.querySelectorAll("button, input, select, summary, nav a")) {
    if (!isVisible(node)) continue;
    const { width, height } = node.getBoundingClientRect();
    if (width < 24 || height < 24) {
      faults.push(`${name(node)} ${node.textContent.trim()} is only ${width.toFixed()} by ${height.toFixed(1)}`);
    }
  }
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) faults.push(`the page is ${wide} wide in a window of ${innerWidth}`);
  for (const node of all) {
    if (!isVisible(node) || node.closest(".scroll")) continue;
    const { right, width } = node.getBoundingClientRect();
    if (width && right > innerWidth + 1) faults.push(`${name(node)} ends at ${right.toFixed()} of ${innerWidth}`);
  }
  return [...new Set(faults)];
})()
