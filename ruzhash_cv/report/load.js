(async () => {
  addEventListener("hashchange", () => location.reload());
  const loaded = {};
  const load = (file) =>
    new Promise((done, failed) => {
      const script = document.createElement("script");
      // The file calls it with its data.
      window.hold = (data) => (loaded[file] = data);
      script.src = file;
      script.onload = () => done(loaded[file]);
      script.onerror = () => failed(new Error(`there is no ${file}`));
      document.head.append(script);
    });
  const pair = await load(`pairs/${location.hash.slice(1).replace(/\W/g, "")}.js`);
  for (const photo of pair.photos) {
    if (photo.address !== null) photo.address = await load(photo.address);
  }
  return pair;
})()
