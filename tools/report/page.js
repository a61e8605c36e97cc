/* Draws the charts of the sheet that stands in the page. Without it the tables say the same. */
(function () {
    'use strict';
    const sheet = JSON.parse(document.getElementById('sheet').textContent);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const palettes = {
        light: ['#0b7285', '#d9480f', '#5f3dc4', '#2b8a3e', '#c2255c', '#1864ab', '#946200', '#495057', '#087f5b', '#862e9c', '#a61e4d', '#364fc7'],
        dark: ['#3bc9db', '#ff922b', '#b197fc', '#69db7c', '#f783ac', '#74c0fc', '#ffd43b', '#ced4da', '#38d9a9', '#e599f7', '#ffa8a8', '#91a7ff'],
    };
    const short = (v, digits = 3) => {
        if (v == null) return '-';
        const a = Math.abs(v);
        if (a >= 1e6) return +(v / 1e6).toPrecision(digits) + ' M';
        if (a >= 1e4) return +(v / 1e3).toPrecision(digits) + ' k';
        return a !== 0 && a < 1e-3 ? v.toExponential(digits - 2) : String(+v.toPrecision(digits));
    };
    /* As many digits as the finest tick has: no two alike where an axis is short and far from zero. */
    const tickWords = ticks => {
        const there = ticks.filter(v => v != null);
        let digits = 3;
        while (digits < 9 && there.some(v => Math.abs(+v.toPrecision(digits) - v) > 1e-9 * Math.abs(v))) digits++;
        return ticks.map(v => (v == null ? '' : short(v, digits)));
    };
    const withUnit = name => sheet.labels[name] + (sheet.bytes.includes(name) ? ', bytes' : '');
    /* No half levels: 1, 2, 5, 10 and so on */
    const wholeSteps = Array.from({ length: 40 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));
    /* One series for each y column and each value of the `by` column, over the union of all x. */
    function seriesOf(chart) {
        const groups = new Map();
        let zeros = 0;
        for (const row of sheet.rows)
            for (const y of chart.y) {
                if (row[y] == null || row[chart.x] == null) continue;
                if ((chart.log_x && row[chart.x] <= 0) || (chart.log_y && row[y] <= 0)) { zeros++; continue; }
                const who = chart.by ? String(row[chart.by]) : '';
                const name = chart.y.length > 1 ? (who ? who + ', ' : '') + sheet.labels[y] : who || sheet.labels[y];
                if (!groups.has(name)) groups.set(name, { who, y, points: new Map() });
                groups.get(name).points.set(row[chart.x], row[y]);
            }
        const xs = [...new Set([...groups.values()].flatMap(g => [...g.points.keys()]))].sort((a, b) => a - b);
        return { xs, groups, zeros };
    }
    function draw(chart, place) {
        const colours = palettes[dark.matches ? 'dark' : 'light'];
        const style = getComputedStyle(document.documentElement);
        const paper = style.getPropertyValue('--paper').trim();
        const ink = style.getPropertyValue('--soft').trim(), grid = style.getPropertyValue('--grid').trim();
        const { xs, groups, zeros } = seriesOf(chart);
        const owners = [...new Set([...groups.values()].map(g => (chart.by ? g.who : g.y)))];
        const series = [{ label: withUnit(chart.x), value: (u, v) => short(v) }];
        for (const [name, g] of groups) {
            const colour = colours[owners.indexOf(chart.by ? g.who : g.y) % colours.length];
            const theory = chart.dashed.includes(g.y);
            const ring = chart.by && chart.y.indexOf(g.y) > 0; /* the colour says whose, the filling which */
            series.push({
                label: name, stroke: colour, width: theory ? 1.5 : 2, dash: theory ? [6, 4] : undefined, spanGaps: true,
                points: { show: !theory, size: ring ? 8 : 6, width: ring ? 2 : 1, fill: ring ? paper : colour }, value: (u, v) => short(v),
            });
        }
        const axis = label => ({ stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, label, labelSize: 22, size: 68,
            values: (u, ticks) => tickWords(ticks) });
        const log = on => (on ? { distr: 3, log: 10 } : {});
        const whole = !chart.log_x && xs.every(Number.isInteger);
        place.textContent = '';
        new uPlot({
            width: Math.min(place.clientWidth, 960), height: 380, series,
            scales: { x: Object.assign({ time: false }, log(chart.log_x)), y: log(chart.log_y) },
            axes: [Object.assign(axis(withUnit(chart.x)), { size: 44 }, whole ? { incrs: wholeSteps } : {}), axis(chart.y_label)],
            legend: { live: true }, cursor: { drag: { x: true, y: true } },
        }, [xs, ...[...groups.values()].map(g => xs.map(x => g.points.get(x) ?? null))], place);
        if (zeros) {
            const note = document.createElement('small');
            note.textContent = zeros + (zeros === 1 ? ' point' : ' points') + ' at zero, which this scale has no place for: see the table.';
            note.style.color = ink;
            place.append(note);
        }
    }
    const all = () => sheet.charts.forEach((chart, i) => draw(chart, document.getElementById('chart' + i)));
    all();
    dark.addEventListener('change', all);
    let timer;
    addEventListener('resize', () => { clearTimeout(timer); timer = setTimeout(all, 150); });
})();
