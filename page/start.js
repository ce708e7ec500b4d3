// Sets the page going: what its visitors do, and its own rhythm.

byId('zone').addEventListener('change', (event) => choose({ zone: event.target.value }));
byId('range').addEventListener('change', (event) => choose({ range: event.target.value }));
byId('charts').addEventListener('keydown', pointWithKeys);
byId('charts').addEventListener('blur', () => pointAt(-1));
for (const type of ['pointermove', 'pointerdown']) {
    byId('charts').addEventListener(type, (event) => {
        pointAt(event.target.closest('svg') ? charts[0].barAt(event.clientX) : -1);
    });
}
byId('charts').addEventListener('pointerleave', (event) => {
    if (event.pointerType === 'mouse') {
        pointAt(-1);
    }
});
new ResizeObserver(drawCharts).observe(byId('charts'));

addEventListener('hashchange', () => {
    readAddress();
    if (data) {
        show();
        lookAtClientOfAddress();
    }
});
document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
        clearTimeout(timer);
        asking.abort();
    } else {
        poll();
    }
});

byId('search').addEventListener('submit', (event) => {
    event.preventDefault();
    look(byId('search-zone').value, byId('search-client').value);
});
byId('close-standing').addEventListener('click', closeStanding);
byId('list-rulings').addEventListener('click', () => listRulings(byId('search-zone').value));
byId('more-rulings').addEventListener('click', readMoreRulings);
byId('close-rulings').addEventListener('click', closeRulings);
new ResizeObserver(drawTimeline).observe(byId('timeline'));

readAddress();
poll();
