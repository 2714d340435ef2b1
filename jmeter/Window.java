import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.jmeter.gui.GuiPackage;
import org.apache.jmeter.gui.JMeterGUIComponent;
import org.apache.jmeter.gui.tree.JMeterTreeListener;
import org.apache.jmeter.gui.tree.JMeterTreeModel;
import org.apache.jmeter.gui.tree.JMeterTreeNode;
import org.apache.jmeter.reporters.ResultCollector;
import org.apache.jmeter.save.SaveService;
import org.apache.jmeter.testelement.TestElement;
import org.apache.jmeter.testelement.TestPlan;
import org.apache.jmeter.util.JMeterUtils;
import org.apache.jorphan.collections.HashTree;
import org.apache.jorphan.collections.ListedHashTree;

/**
 * {@code java -cp "JMETER/bin/ApacheJMeter-5.6.3.jar:JMETER/lib/*:JMETER/lib/ext/*" Window.java JMETER FOLDER [write]}: opens each plan
 * of a folder by JMeter's own code, looks at it as somebody does who runs it in the window, and saves it. Exit status 1 where what is
 * saved differs from the file, so that whoever does so leaves it as it was. {@code write} keeps what is saved.
 */
class Window {
    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]).toAbsolutePath();
        boolean write = arguments.length > 2 && arguments[2].equals("write");
        JMeterUtils.setJMeterHome(home.toString());
        JMeterUtils.loadJMeterProperties(home.resolve("bin/jmeter.properties").toString());
        JMeterUtils.setLocale(Locale.ENGLISH);
        // The window knows the classes of its panels by these jars.
        JMeterUtils.getJMeterProperties().setProperty("search_paths", home.resolve("lib/ext").toString());
        SaveService.loadProperties();
        JMeterTreeModel model = new JMeterTreeModel();
        GuiPackage.initInstance(new JMeterTreeListener(model), model);
        List<Path> plans;
        try (Stream<Path> found = Files.list(Path.of(arguments[1]))) {
            plans = found.filter(f -> f.toString().endsWith(".jmx")).sorted().toList();
        }
        if (plans.isEmpty()) throw new IllegalArgumentException("no plan in " + arguments[1]);
        boolean same = true;
        for (Path plan : plans) {
            byte[] before = Files.readAllBytes(plan), after = saved(plan);
            if (Arrays.equals(before, after)) {
                System.out.println(plan.getFileName() + ": as JMeter saves it");
            } else if (write) {
                Files.write(plan, after);
                System.out.println(plan.getFileName() + ": written");
            } else {
                same = false;
                int at = Arrays.mismatch(before, after);
                System.out.println(plan.getFileName() + ": JMeter saves it otherwise, from byte " + at + " on:\n  "
                        + around(before, at) + "\n  " + around(after, at));
            }
        }
        // Swing's threads would keep the program.
        System.exit(same ? 0 : 1);
    }

    static String around(byte[] text, int at) {
        String all = new String(text, 0, Math.min(text.length, at + 120));
        return all.substring(Math.max(0, all.length() - 240)).replaceAll("\\s+", " ");
    }

    static byte[] saved(Path plan) throws Exception {
        GuiPackage gui = GuiPackage.getInstance();
        gui.getTreeModel().clearTestPlan();
        gui.addSubTree(SaveService.loadTree(plan.toFile()));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        SaveService.saveTree(shown(gui, (JMeterTreeNode) gui.getTreeModel().getRoot()), out);
        return out.toByteArray();
    }

    /**
     * The elements below a node, those as their panels leave them that somebody looks at who runs a plan: the plan, its first element,
     * which the window chooses, and the reports. JMeter saves an element with enabled="true" until its panel was looked at, and without it
     * from then on.
     */
    static HashTree shown(GuiPackage gui, JMeterTreeNode node) {
        HashTree tree = new ListedHashTree();
        for (Object each : Collections.list(node.children())) {
            JMeterTreeNode child = (JMeterTreeNode) each;
            TestElement element = child.getTestElement();
            boolean first = node.getTestElement() instanceof TestPlan && node.getFirstChild() == child;
            if (first || element instanceof TestPlan || element instanceof ResultCollector) {
                JMeterGUIComponent panel = gui.getGui(element);
                panel.configure(element);
                panel.modifyTestElement(element);
            }
            tree.add(element, shown(gui, child));
        }
        return tree;
    }
}
