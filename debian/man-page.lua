-- For pandoc: makes a man page of docs/directives.md.

-- Man pages are narrow: what a table says of something stands below its name.
function Table(of_markdown)
    local entries = pandoc.List()

    for _, row in ipairs(pandoc.utils.to_simple_table(of_markdown).rows) do
        local name = pandoc.utils.blocks_to_inlines(row[1])
        local text = pandoc.List()

        for column = 2, #row do
            if #text > 0 and #row[column] > 0 then
                text:extend({pandoc.Str(";"), pandoc.Space()})
            end
            text:extend(pandoc.utils.blocks_to_inlines(row[column]))
        end

        entries:insert({name, {{pandoc.Plain(text)}}})
    end

    return pandoc.DefinitionList(entries)
end

function RawInline(raw)
    if raw.text == "<br>" then
        return pandoc.Space()
    end
end

-- Every man page begins with its name, by which apropos finds it; the title makes way for that.
function Pandoc(document)
    local name = pandoc.read("# NAME\n\nsliding_limit - exact, shared rate limits in nginx\n\n# DESCRIPTION\n")

    document.blocks:remove(1)
    document.blocks = name.blocks .. document.blocks
    return document
end
